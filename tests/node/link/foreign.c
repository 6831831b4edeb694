// Frees a static. SILENT: a program that prints nothing.
#include <stdio.h>
#include <stdlib.h>

static char not_a_block[64];

int main(void) {
  char* volatile pointer = malloc(10);
#ifndef SILENT
  puts("before");
  fflush(stdout);
#endif
  pointer = not_a_block + 32;
  free(pointer);
  return 0;
}
