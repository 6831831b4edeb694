// Names under which glibc exports its allocator beside the usual ones.
#include <stdio.h>
#include <stdlib.h>

void* __libc_memalign(size_t, size_t);
void* __libc_valloc(size_t);
void* __libc_pvalloc(size_t);

int main(void) {
  free(__libc_memalign(64, 100));
  free(__libc_valloc(100));
  free(__libc_pvalloc(100));
  puts("glibc names ok");
  return 0;
}
