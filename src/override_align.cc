// Older relatives of malloc. They call the names that a program may replace, so that their blocks
// come from the allocator that its free belongs to.
#include <unistd.h>

#include "os.h"
#include "override_memalign.h"
#include "override_names.h"

extern "C" void* realloc(void* block, size_t size);

#if defined(__wasi__)
// Not a name of wasi-libc's malloc: a program may bring its own.
ASHLAR_LINK_MALLOC;

ASHLAR_EXTRA_NAME void* memalign(size_t alignment, size_t size) {
  return ashlar::allocate_rounding_alignment(alignment, size);
}
#else
extern "C" void* memalign(size_t alignment, size_t size);
#endif

ASHLAR_EXTRA_NAME void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    ashlar::os::set_out_of_memory();
    return nullptr;
  }
  return realloc(block, bytes);
}

ASHLAR_EXTRA_NAME void* valloc(size_t size) {
  return memalign(static_cast<size_t>(getpagesize()), size);
}

// Whole pages, at least one.
ASHLAR_EXTRA_NAME void* pvalloc(size_t size) {
  const size_t page_bytes = static_cast<size_t>(getpagesize());
  if (size > static_cast<size_t>(PTRDIFF_MAX)) {
    ashlar::os::set_out_of_memory();
    return nullptr;
  }
  const size_t bytes = ashlar::align_up(size == 0 ? 1 : size, page_bytes);
  return memalign(page_bytes, bytes);
}

#if defined(__linux__)
// glibc exports them.
ASHLAR_EXTRA_NAME void* __libc_valloc(size_t size) { return valloc(size); }
ASHLAR_EXTRA_NAME void* __libc_pvalloc(size_t size) { return pvalloc(size); }
#endif

#if defined(__EMSCRIPTEN__)

extern "C" size_t malloc_usable_size(void* block);

// dlmalloc's. Null when the block would have to move: nothing is changed then.
ASHLAR_EXTRA_NAME void* realloc_in_place(void* block, size_t size) {
  return block != nullptr && ashlar::resize_in_place(block, size) ? block : nullptr;
}

#endif
