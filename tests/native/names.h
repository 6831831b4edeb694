// The allocator under test by one set of names: ashlar_* of the core archive, or, with
// ASHLAR_PLAIN_NAMES, the C names of the override archive.
#pragma once

#include <stddef.h>

#ifdef ASHLAR_PLAIN_NAMES
#include <malloc.h>
#include <stdlib.h>
#define HEAP_NAME(plain, own) ::plain
#else
#define HEAP_NAME(plain, own) ::own
#endif

#include <ashlar.h>

namespace heap {

inline void* malloc(size_t size) { return HEAP_NAME(malloc, ashlar_malloc)(size); }
inline void* calloc(size_t count, size_t size) {
  return HEAP_NAME(calloc, ashlar_calloc)(count, size);
}
inline void* realloc(void* block, size_t size) {
  return HEAP_NAME(realloc, ashlar_realloc)(block, size);
}
inline void* aligned_alloc(size_t alignment, size_t size) {
  return HEAP_NAME(aligned_alloc, ashlar_aligned_alloc)(alignment, size);
}
inline void free(void* block) { HEAP_NAME(free, ashlar_free)(block); }
inline size_t usable_size(void* block) {
  return HEAP_NAME(malloc_usable_size, ashlar_usable_size)(block);
}

}  // namespace heap
