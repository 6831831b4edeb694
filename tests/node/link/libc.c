// What makes a libc allocate by itself: 100 atexit handlers, a locale, the environment, a stream.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int handlers;
static void handler(void) {
  if (++handlers == 100) puts("100 handlers ran");
}

int main(void) {
  for (int i = 0; i < 100; ++i) {
    if (atexit(handler) != 0) return 1;
  }
  locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (locale == (locale_t)0) return 2;
  if (setenv("STONE", "ashlar", 1) != 0 || strcmp(getenv("STONE"), "ashlar") != 0) return 3;
  char* text = NULL;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  if (stream == NULL) return 4;
  for (int i = 0; i < 1000; ++i) fprintf(stream, "%d ", i);
  fclose(stream);
  printf("%zu bytes of text\n", length);
  free(text);
  exit(0);
}
