// A program that prints.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char* text = malloc(6);
  memcpy(text, "hello", 6);
  text = realloc(text, 60000);
  puts(text);
  free(text);
  return 0;
}
