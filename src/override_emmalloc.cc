// The names of emmalloc, for programs that call it by name. What they mean is written in
// emmalloc.h; it differs from malloc's family in that a size of 0 frees a block.
#include <emscripten/heap.h>
#include <malloc.h>
#include <unistd.h>

#include "api.h"
#include "ashlar.h"
#include "os.h"
#include "override_names.h"

extern "C" int posix_memalign(void** result, size_t alignment, size_t size);
extern "C" int malloc_trim(size_t padding);

namespace {

ashlar_stats_t current_stats() {
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  return stats;
}

void* free_and_return_null(void* block) {
  free(block);
  return nullptr;
}

bool stays_in_place(void* block, size_t size) { return ashlar::resize_in_place(block, size); }

}  // namespace

ASHLAR_EXTRA_NAME void* emmalloc_malloc(size_t size) { return malloc(size); }

ASHLAR_EXTRA_NAME void emmalloc_free(void* block) { free(block); }

ASHLAR_EXTRA_NAME void* emmalloc_calloc(size_t count, size_t size) { return calloc(count, size); }

ASHLAR_EXTRA_NAME void* emmalloc_memalign(size_t alignment, size_t size) {
  return memalign(alignment, size);
}

ASHLAR_EXTRA_NAME int emmalloc_posix_memalign(void** result, size_t alignment, size_t size) {
  return posix_memalign(result, alignment, size);
}

ASHLAR_EXTRA_NAME size_t emmalloc_usable_size(void* block) { return malloc_usable_size(block); }

ASHLAR_EXTRA_NAME void* emmalloc_realloc(void* block, size_t size) {
  if (block != nullptr && size == 0) return free_and_return_null(block);
  return realloc(block, size);
}

// Resizes where the block stands, or does nothing and returns null.
ASHLAR_EXTRA_NAME void* emmalloc_realloc_try(void* block, size_t size) {
  if (block == nullptr) return nullptr;
  if (size == 0) return free_and_return_null(block);
  return stays_in_place(block, size) ? block : nullptr;
}

ASHLAR_EXTRA_NAME void* emmalloc_aligned_realloc(void* block, size_t alignment, size_t size) {
  if (block == nullptr) return memalign(alignment, size);
  if (size == 0) return free_and_return_null(block);
  if (alignment <= ashlar::os::alignment) return realloc(block, size);
  const size_t usable = malloc_usable_size(block);
  if (size <= usable) return block;
  void* const moved = memalign(alignment, size);
  if (moved == nullptr) return nullptr;
  __builtin_memcpy(moved, block, usable);
  free(block);
  return moved;
}

// The contents may be lost: the old block goes first, so that the new one finds its memory.
ASHLAR_EXTRA_NAME void* emmalloc_aligned_realloc_uninitialized(void* block, size_t alignment,
                                                               size_t size) {
  if (block != nullptr && size != 0 && stays_in_place(block, size)) return block;
  free(block);
  return block != nullptr && size == 0 ? nullptr : memalign(alignment, size);
}

ASHLAR_EXTRA_NAME void* emmalloc_realloc_uninitialized(void* block, size_t size) {
  return emmalloc_aligned_realloc_uninitialized(block, ashlar::os::alignment, size);
}

// emmalloc has this one without its prefix, too.
ASHLAR_EXTRA_NAME void* aligned_realloc(void* block, size_t alignment, size_t size) {
  return emmalloc_aligned_realloc(block, alignment, size);
}

ASHLAR_EXTRA_NAME struct mallinfo emmalloc_mallinfo() { return mallinfo(); }

ASHLAR_EXTRA_NAME int emmalloc_trim(size_t padding) { return malloc_trim(padding); }

ASHLAR_EXTRA_NAME int emmalloc_validate_memory_regions() {
  const int result = ashlar_check();
  if (result == 0) return 0;
  char line[128];
  size_t length = 0;
  for (const char* next = ashlar_last_message(); *next != 0 && length < sizeof line - 2; ++next) {
    line[length++] = *next;
  }
  line[length++] = '\n';
  line[length] = 0;
  ashlar::os::write_error(line, length);
  return result;
}

ASHLAR_EXTRA_NAME void emmalloc_dump_memory_regions() { malloc_stats(); }

ASHLAR_EXTRA_NAME size_t emmalloc_dynamic_heap_size() { return current_stats().committed_bytes; }

ASHLAR_EXTRA_NAME size_t emmalloc_free_dynamic_memory() { return current_stats().free_bytes; }

ASHLAR_EXTRA_NAME size_t emmalloc_unclaimed_heap_memory() {
  return emscripten_get_heap_max() - reinterpret_cast<uintptr_t>(sbrk(0));
}

// Element i counts the free runs of 2^i to 2^(i+1) - 1 bytes. Returns how many runs there are.
ASHLAR_EXTRA_NAME size_t emmalloc_compute_free_dynamic_memory_fragmentation_map(size_t counts[32]) {
  ashlar::count_free_runs(counts);
  size_t sum = 0;
  for (unsigned i = 0; i < 32; ++i) sum += counts[i];
  return sum;
}

// It would forget every block that the program holds. emmalloc's own tests call it; the header
// doesn't name it.
ASHLAR_EXTRA_NAME void emmalloc_blank_slate_from_orbit() {
  static constexpr char line[] = "ashlar: emmalloc_blank_slate_from_orbit is not offered\n";
  ashlar::os::write_error(line, sizeof line - 1);
  ashlar::os::stop();
}
