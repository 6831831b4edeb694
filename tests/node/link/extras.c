// dlmalloc's and emmalloc's own calls, on Emscripten, and the questions to malloc everywhere.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ashlar.h"
#ifdef __EMSCRIPTEN__
#include <emscripten/emmalloc.h>
#endif

int malloc_trim(size_t);
size_t malloc_footprint(void);
size_t malloc_max_footprint(void);
size_t malloc_footprint_limit(void);
size_t malloc_set_footprint_limit(size_t);
void** independent_calloc(size_t, size_t, void**);
void** independent_comalloc(size_t, size_t*, void**);
size_t bulk_free(void**, size_t);
void* realloc_in_place(void*, size_t);

static int line_of_failure;
#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition) && line_of_failure == 0) line_of_failure = __LINE__; \
  } while (0)

int main(void) {
  char* big = malloc(1000000);
  big[0] = 1;
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  struct mallinfo info = mallinfo();
  CHECK((size_t)info.uordblks == stats.live_bytes && (size_t)info.arena == stats.committed_bytes);
  CHECK((size_t)info.fordblks == stats.free_bytes && info.uordblks >= 1000000);
  CHECK(mallopt(-1, 0) == 0);
  CHECK(malloc_trim(0) == 0);
#ifdef __EMSCRIPTEN__
  CHECK(malloc_footprint() == stats.committed_bytes);
  CHECK(malloc_max_footprint() >= malloc_footprint());
  CHECK(malloc_footprint_limit() == SIZE_MAX);
  CHECK(malloc_set_footprint_limit(2000000) == 2000000);
  errno = 0;
  CHECK(malloc(3000000) == NULL && errno == ENOMEM);
  CHECK(malloc_set_footprint_limit(SIZE_MAX) == SIZE_MAX);
  free(malloc(3000000));

  void** cells = independent_calloc(20, 50, NULL);
  for (int i = 0; i < 20; ++i) CHECK(cells[i] != NULL && *(int*)cells[i] == 0);
  free(cells[7]);
  cells[7] = NULL;
  CHECK(bulk_free(cells, 20) == 0 && cells[0] == NULL && cells[19] == NULL);
  free(cells);
  size_t sizes[3] = {10, 20000, 0};
  void* parts[3];
  CHECK(independent_comalloc(3, sizes, parts) == parts);
  memset(parts[1], 1, 20000);
  CHECK(bulk_free(parts, 3) == 0);
  ashlar_stats_t before;
  ashlar_stats(&before);
  CHECK(independent_calloc(4, SIZE_MAX / 2, parts) == NULL);
  ashlar_stats(&stats);
  CHECK(stats.live_blocks == before.live_blocks);

  char* block = emmalloc_malloc(100);
  const size_t usable = emmalloc_usable_size(block);
  memset(block, 7, usable);
  CHECK(realloc_in_place(block, usable) == block);
  CHECK(realloc_in_place(block, 50000000) == NULL && realloc_in_place(NULL, 1) == NULL);
  CHECK(emmalloc_realloc_try(block, 50) == block && emmalloc_realloc_try(NULL, 50) == NULL);
  CHECK(emmalloc_realloc_try(block, 50000000) == NULL && block[49] == 7);
  CHECK(realloc_in_place(block, 1) == block && block[0] == 7);
  // What follows is free: the block takes it.
  unsigned char* pair[2] = {emmalloc_malloc(5000), emmalloc_malloc(5000)};
  emmalloc_free(pair[1]);
  CHECK(emmalloc_realloc_try(pair[0], 9000) == pair[0] && malloc_usable_size(pair[0]) >= 9000);
  emmalloc_free(pair[0]);
  block = emmalloc_realloc(block, 3000);
  CHECK(block[0] == 7);
  CHECK(emmalloc_realloc(block, 0) == NULL);
  block = emmalloc_aligned_realloc(emmalloc_memalign(256, 10), 256, 9000);
  CHECK((uintptr_t)block % 256 == 0 && emmalloc_usable_size(block) >= 9000);
  CHECK(emmalloc_aligned_realloc(block, 256, 10) == block);
  block = emmalloc_aligned_realloc_uninitialized(block, 256, 70000);
  CHECK((uintptr_t)block % 256 == 0);
  block = emmalloc_realloc_uninitialized(block, 90000);
  CHECK(emmalloc_realloc_uninitialized(block, 0) == NULL);
  int* zero = emmalloc_calloc(25, 4);
  CHECK(zero[0] == 0 && zero[24] == 0);
  emmalloc_free(zero);
  void* aligned = NULL;
  CHECK(emmalloc_posix_memalign(&aligned, 3, 8) == EINVAL);
  CHECK(emmalloc_posix_memalign(&aligned, 64, 8) == 0 && (uintptr_t)aligned % 64 == 0);
  emmalloc_free(aligned);
  CHECK(emmalloc_trim(0) == 0 && emmalloc_validate_memory_regions() == 0);
  CHECK(emmalloc_mallinfo().uordblks >= 1000000);
  ashlar_stats(&stats);
  CHECK(emmalloc_dynamic_heap_size() == stats.committed_bytes);
  CHECK(emmalloc_free_dynamic_memory() == stats.free_bytes);
  CHECK(emmalloc_unclaimed_heap_memory() > 0);
  size_t map[32];
  CHECK(emmalloc_compute_free_dynamic_memory_fragmentation_map(map) == stats.free_blocks);
  size_t most = 0;
  for (size_t i = 0; i < 32; i++) {
    if (map[i] != 0) most = i;
  }
  CHECK(stats.largest_free_bytes >> most == 1);
  emmalloc_dump_memory_regions();
#else
  malloc_stats();
  CHECK(mallinfo2().uordblks == stats.live_bytes);
  CHECK(malloc_info(0, stdout) == 0 && malloc_info(1, stdout) == -1);
#endif
  printf("extras %s\n", line_of_failure == 0 ? "ok" : "fail");
  if (line_of_failure != 0) printf("line %d\n", line_of_failure);
  return line_of_failure != 0;
}
