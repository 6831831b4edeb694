// One byte behind a block, for a sanitizer to find (row G78).
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  (void)argv;
  volatile char* block = malloc(100);
  block[99 + argc] = 1;
  free((void*)block);
  puts("survived");
  return 0;
}
