// The heap as the faces see it: under the lock where there are threads. Refusals leave errno set.
// The faces are the C API (api.cc) and the names of libc and C++ (override_*.cc).
#pragma once

#include "heap.h"

namespace ashlar {

class Guard {
 public:
  fast_path Guard() {
    if constexpr (os::has_threads) os::lock();
  }
  fast_path ~Guard() {
    if constexpr (os::has_threads) os::unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
};

// Without threads nothing stands between malloc and the heap: its slow path is a tail call.
fast_path void* allocate(size_t size) {
  const Guard guard;
  return heap.allocate(size);
}

fast_path void release(void* block) {
  const Guard guard;
  heap.release(block);
}

inline void* allocate_zeroed(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    os::set_out_of_memory();
    return nullptr;
  }
  const Guard guard;
  return heap.allocate_zeroed(bytes);
}

inline void* reallocate(void* block, size_t size) {
  const Guard guard;
  return heap.reallocate(block, size);
}

// `alignment` is a power of two.
inline void* allocate_aligned(size_t alignment, size_t size) {
  const Guard guard;
  return heap.allocate_aligned(alignment, size);
}

// `block` is a live one.
inline bool resize_in_place(void* block, size_t size) {
  const Guard guard;
  return heap.resize_in_place(block, size);
}

// counts[i]: free runs of 2^i to 2^(i+1) - 1 bytes; word_bits elements.
inline void count_free_runs(size_t* counts) {
  const Guard guard;
  arena.count_free(counts);
}

inline size_t usable_size(const void* block) {
  const Guard guard;
  return Heap::usable_bytes(block);
}

}  // namespace ashlar
