/* Replays operations that were decoded before, so that next to nothing but the allocator is timed.
 * The work allocates nothing itself: what memory grows by is the allocator's doing. */
#include "heap.h"

#ifdef __EMSCRIPTEN__
#include <unistd.h>
#endif
#ifdef WORK_ASHLAR
#include <ashlar.h>
#endif

struct facts facts;

enum { max_slots = 1 << 19 };
static struct block slots[max_slots];
static struct operation buffer[trace_chunk];

WORK_EXPORT(trace_buffer) struct operation* trace_buffer(void) { return buffer; }

WORK_EXPORT(trace_replay) void trace_replay(uint32_t count) {
  uint32_t i;
  for (i = 0; i < count; ++i) {
    struct operation const* const operation = &buffer[i];
    struct block* const slot = &slots[operation->slot & (max_slots - 1)];
    switch (operation->kind) {
      case op_malloc: take(slot, operation->size); break;
      case op_free: give(slot); break;
      case op_calloc: take_zeroed(slot, operation->size); break;
      case op_realloc: resize(slot, operation->size); break;
      default: take_aligned(slot, 1u << operation->log2_alignment, operation->size);
    }
  }
}

#ifdef __wasm__

WORK_EXPORT(work_facts) struct facts* work_facts(void) { return &facts; }
WORK_EXPORT(trace_max_slots) uint32_t trace_max_slots(void) { return max_slots; }

/* Where the allocator's memory ends. Emscripten's memory is larger than what its break gave out. */
WORK_EXPORT(work_memory_end) uint32_t work_memory_end(void) {
#ifdef __EMSCRIPTEN__
  return (uint32_t)sbrk(0);
#else
  return (uint32_t)__builtin_wasm_memory_size(0) << 16;
#endif
}

WORK_EXPORT(work_used_peak) uint32_t work_used_peak(void) {
#ifdef WORK_ASHLAR
  return ashlar_used_peak();
#else
  return 0;
#endif
}

#endif
