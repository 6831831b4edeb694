// A program with a malloc and free of its own, that forgets calloc.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static char memory[10000];
static size_t used;
void* malloc(size_t size) {
  void* const block = memory + used;
  used += (size + 15) / 16 * 16;
  return block;
}
void free(void* block) { (void)block; }

int main(void) {
  char* const text = calloc(10, 10);
  puts("two allocators");
  free(text);
  return 0;
}
