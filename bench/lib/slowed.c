/* An arm that is known to be slower: the malloc that is linked, and a few additions before each
 * call, more of them where a call costs more, so that about 10 % are added. Where a measurement
 * cannot tell it from that malloc, it can tell nothing. */
#include <stdlib.h>

static volatile unsigned turns;

static void waste_time(size_t count) {
  for (; count > 0; --count) turns = turns + 1;
}

static size_t turns_for(size_t size) { return 4 + (size < 8192 ? size : 8192) / 256; }

void* slowed_malloc(size_t size) {
  waste_time(turns_for(size));
  return malloc(size);
}

void slowed_free(void* block) {
  waste_time(turns_for(0));
  free(block);
}

/* To clear a block takes as long as it is large. */
void* slowed_calloc(size_t count, size_t size) {
  waste_time(turns_for(0) + count * size / 32);
  return calloc(count, size);
}

void* slowed_realloc(void* block, size_t size) {
  waste_time(turns_for(size));
  return realloc(block, size);
}

void* slowed_aligned_alloc(size_t alignment, size_t size) {
  waste_time(turns_for(size));
  return aligned_alloc(alignment, size);
}
