/* The allocator under measure, as the work (trace.c, shapes.c) sees it; and the work, as whoever
 * runs it sees that: exports of a wasm module, plain functions natively.
 *
 * HEAP(name) names the allocator's functions. By default they are the program's own malloc and
 * free; HEAP_PREFIX puts another family in their place (slowed.c's, or runner.c's, behind which
 * stands an allocator that was translated from wasm).
 */
#ifndef ASHLAR_BENCH_HEAP_H
#define ASHLAR_BENCH_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef HEAP_PREFIX
#define HEAP_JOIN_(a, b) a##b
#define HEAP_JOIN(a, b) HEAP_JOIN_(a, b)
#define HEAP(name) HEAP_JOIN(HEAP_PREFIX, name)
void* HEAP(malloc)(size_t size);
void HEAP(free)(void* block);
void* HEAP(calloc)(size_t count, size_t size);
void* HEAP(realloc)(void* block, size_t size);
void* HEAP(aligned_alloc)(size_t alignment, size_t size);
#else
#define HEAP(name) name
#endif

#ifdef __wasm__
#define WORK_EXPORT(name) __attribute__((used, export_name(#name)))
#else
#define WORK_EXPORT(name)
#endif

/* One operation of a trace, decoded from MTR1 (lib/traces.mjs writes them). */
struct operation {
  uint16_t kind;
  uint16_t log2_alignment;
  uint32_t slot;
  uint32_t size;
};

enum { op_malloc, op_free, op_calloc, op_realloc, op_aligned };
enum { trace_chunk = 1 << 14 };

/* A program's block. Its first and last byte are written, and the first is read back when the block
 * is given up: so memory is touched as by a program, and a block that another one overwrote shows
 * in the checksum, which must be the same for every allocator. */
struct block {
  unsigned char* bytes;
  uint32_t size;
};

struct facts {
  uint32_t operations;
  uint32_t failures; /* requests that were refused, or got a misaligned block */
  uint32_t checksum;
  uint32_t live_bytes;
  uint32_t peak_live_bytes; /* as asked for */
};
extern struct facts facts;

static inline void keep(struct block* block, unsigned char* bytes, uint32_t size) {
  ++facts.operations;
  if (bytes == NULL) {
    ++facts.failures;
    return;
  }
  facts.live_bytes += size - block->size;
  if (facts.live_bytes > facts.peak_live_bytes) facts.peak_live_bytes = facts.live_bytes;
  block->bytes = bytes;
  block->size = size;
  if (size == 0) return;
  bytes[0] = (unsigned char)facts.operations;
  bytes[size - 1] = (unsigned char)facts.operations;
}

static inline void read_back(const struct block* block) {
  if (block->size != 0) facts.checksum = facts.checksum * 31 + block->bytes[0];
}

static inline void take(struct block* block, uint32_t size) {
  keep(block, HEAP(malloc)(size), size);
}

static inline void take_zeroed(struct block* block, uint32_t size) {
  unsigned char* const bytes = HEAP(calloc)(1, size);
  if (bytes != NULL && size != 0) facts.checksum += bytes[0] + bytes[size / 2] + bytes[size - 1];
  keep(block, bytes, size);
}

static inline void resize(struct block* block, uint32_t size) {
  unsigned char* const bytes = HEAP(realloc)(block->bytes, size);
  if (bytes != NULL && block->size != 0 && size != 0)
    facts.checksum = facts.checksum * 31 + bytes[0];
  keep(block, bytes, size);
}

/* Some allocators refuse sizes that are no multiple of the alignment. */
static inline void take_aligned(struct block* block, uint32_t alignment, uint32_t size) {
  uint32_t const whole = (size + alignment - 1) & ~(alignment - 1);
  unsigned char* const bytes = HEAP(aligned_alloc)(alignment, whole);
  if (((uintptr_t)bytes & (alignment - 1)) != 0) ++facts.failures;
  keep(block, bytes, size);
}

static inline void give(struct block* block) {
  if (block->bytes == NULL) return;
  ++facts.operations;
  read_back(block);
  facts.live_bytes -= block->size;
  HEAP(free)(block->bytes);
  block->bytes = NULL;
  block->size = 0;
}

/* trace.c */
struct operation* trace_buffer(void); /* room for trace_chunk operations */
void trace_replay(uint32_t count);    /* those that stand in the buffer now */

/* shapes.c */
const char* shape_name(uint32_t index);          /* null after the last one */
uint32_t shape_is_fresh(uint32_t index);         /* its first round is what is measured */
void shape_start(uint32_t index, uint32_t seed); /* fills the heap to the shape's level */
void shape_round(uint32_t index);                /* the work that is measured */

#endif
