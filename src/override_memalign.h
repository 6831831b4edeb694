// What memalign does with an alignment that is no power of two.
#pragma once

#include "api.h"
#include "os.h"

namespace ashlar {

// Takes the next power of two, as every memalign does.
inline void* allocate_rounding_alignment(size_t alignment, size_t size) {
  size_t power = os::alignment;
  while (power < alignment && power <= static_cast<size_t>(PTRDIFF_MAX)) power *= 2;
  if (power < alignment) {
    os::set_invalid_argument();
    return nullptr;
  }
  return allocate_aligned(power, size);
}

}  // namespace ashlar
