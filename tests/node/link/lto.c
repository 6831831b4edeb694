// Under LTO the compiler makes one calloc of this malloc and memset, after it has read the
// archives.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** unused) {
  (void)unused;
  const size_t size = 1000 * (size_t)count;
  char* const block = malloc(size);
  memset(block, 0, size);
  char* volatile seen = block;
  printf("lto %s\n", seen[0] == 0 && seen[999] == 0 ? "ok" : "fail");
  free(seen);
  return 0;
}
