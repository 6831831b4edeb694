// Every name of libc's malloc family, and that all of them are one allocator: Ashlar's.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ashlar.h"

void* memalign(size_t, size_t);
void* reallocarray(void*, size_t, size_t);
void* valloc(size_t);
void* pvalloc(size_t);
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void __libc_free(void*);
void* emscripten_builtin_malloc(size_t);
void* emscripten_builtin_calloc(size_t, size_t);
void* emscripten_builtin_realloc(void*, size_t);
void* emscripten_builtin_memalign(size_t, size_t);
void emscripten_builtin_free(void*);

static int line_of_failure;
#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition) && line_of_failure == 0) line_of_failure = __LINE__; \
  } while (0)

static void use(void* block, size_t size, size_t alignment) {
  CHECK(block != NULL && (uintptr_t)block % alignment == 0);
  CHECK(malloc_usable_size(block) >= size && ashlar_usable_size(block) >= size);
  memset(block, 0xa5, malloc_usable_size(block));
}

int main(void) {
  void* blocks[16] = {0};
  int count = 0;
#define ADD(call, size, alignment)       \
  do {                                   \
    blocks[count] = call;                \
    use(blocks[count], size, alignment); \
    ++count;                             \
  } while (0)
  ADD(malloc(100), 100, 8);
  ADD(calloc(10, 10), 100, 8);
  ADD(realloc(NULL, 100), 100, 8);
  ADD(aligned_alloc(64, 100), 100, 64);
  ADD(memalign(48, 100), 100, 64);
  ADD(reallocarray(NULL, 10, 10), 100, 8);
  ADD(valloc(100), 100, 4096);
  ADD(pvalloc(100), 4096, 4096);
  ADD(__libc_malloc(100), 100, 8);
  ADD(__libc_calloc(10, 10), 100, 8);
  ADD(realloc(malloc(1), 100000), 100000, 8);
#ifdef __EMSCRIPTEN__
  ADD(emscripten_builtin_malloc(100), 100, 8);
  ADD(emscripten_builtin_calloc(10, 10), 100, 8);
  ADD(emscripten_builtin_realloc(NULL, 100), 100, 8);
  ADD(emscripten_builtin_memalign(64, 100), 100, 64);
#endif
  CHECK(posix_memalign(&blocks[count], 256, 100) == 0);
  use(blocks[count++], 100, 256);

  void* untouched = &count;
  CHECK(posix_memalign(&untouched, 3, 8) == EINVAL && posix_memalign(&untouched, 1, 8) == EINVAL);
  CHECK(untouched == &count);
  errno = 0;
  CHECK(reallocarray(NULL, SIZE_MAX / 2, 3) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(pvalloc(SIZE_MAX - 10) == NULL && errno == ENOMEM);

  ashlar_stats_t stats;
  ashlar_stats(&stats);
  CHECK(stats.live_blocks >= (size_t)count);
  CHECK(ashlar_check() == 0);
  for (int i = 0; i < count; ++i) {
    if (i % 2) {
      free(blocks[i]);
    } else {
      __libc_free(blocks[i]);
    }
  }
  printf("names %s\n", line_of_failure == 0 ? "ok" : "fail");
  if (line_of_failure != 0) printf("line %d\n", line_of_failure);
  return line_of_failure != 0;
}
