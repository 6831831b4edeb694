/* The smallest program that allocates and prints: ./dev bench size shows what a malloc adds to it.
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  char* const words = malloc(64);
  if (words == NULL) return 1;
  snprintf(words, 64, "hello, %s", argc > 1 ? argv[1] : "world");
  puts(words);
  free(words);
  return 0;
}
