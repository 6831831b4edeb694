// A program with an sbrk of its own, below the memory that is there from the start.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern unsigned char __heap_base;
static uintptr_t own_break;
static int calls;
void* sbrk(intptr_t increment) {
  if (own_break == 0) own_break = ((uintptr_t)&__heap_base + 1000000) & ~(uintptr_t)3;
  const uintptr_t old = own_break;
  ++calls;
  if (increment > 8000000 || old + (uintptr_t)increment > 12000000) {
    errno = ENOMEM;
    return (void*)-1;
  }
  own_break += (uintptr_t)increment;
  return (void*)old;
}

int main(void) {
  // Dirty, as after an earlier user of this memory.
  memset((void*)((uintptr_t)&__heap_base + 1000000), 0xff, 500000);
  const char* const zero = calloc(1, 300000);
  for (int i = 0; i < 300000; ++i) {
    if (zero[i] != 0) return printf("byte %d is not zero\n", i), 1;
  }
  int count = 0;
  while (malloc(100000) != NULL) ++count;
  printf("own sbrk %s\n", calls > 1 && count > 10 && count < 120 ? "ok" : "fail");
  return 0;
}
