// The OS layer of WASI and of freestanding modules: memory.grow.
//
// Ours is what our own memory.grow returned, and the linker's heap in a program whose malloc we
// are. Anybody else may grow memory between two of our calls; that leaves a gap and nothing more.
#if defined(__wasi__)
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>
#endif

#include "os.h"

extern "C" {

// Set by the linker since LLVM 15; an older one leaves __heap_end undefined.
[[gnu::weak]] extern unsigned char __heap_base;
[[gnu::weak]] extern unsigned char __heap_end;

// Defined by the override archive. Where it is missing the program has another malloc, and that one
// (wasi-libc's does) takes the linker's heap for itself.
[[gnu::weak]] extern const unsigned char ashlar_is_malloc;

#if defined(__wasi__)
// Weak: what the program itself has linked in, and no more. A strong reference would bring the
// import fd_write to a program that writes nothing.
[[gnu::weak]] ssize_t writev(int, const struct iovec*, int);
[[gnu::weak]] ssize_t write(int, const void*, size_t);
// A program that never refers to errno can't see it set.
[[gnu::weak]] extern __thread int errno;
#endif

}  // extern "C"

namespace ashlar::os {

Memory take_memory(size_t bytes) {
  const size_t refused = static_cast<size_t>(-1);
  const size_t begin_page = __builtin_wasm_memory_grow(0, bytes / grow_unit_bytes);
  if (begin_page == refused) return {0, 0, 0};
  const uintptr_t begin = begin_page * grow_unit_bytes;
  return {begin, bytes, begin};
}

Memory initial_memory() {
  if (&ashlar_is_malloc == nullptr || &__heap_base == nullptr || &__heap_end == nullptr) {
    return {0, 0, 0};
  }
  const uintptr_t begin =
      (reinterpret_cast<uintptr_t>(&__heap_base) + alignment - 1) & ~(alignment - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(&__heap_end) & ~(alignment - 1);
  if (begin >= end) return {0, 0, 0};
  // Not promised to be zero: a host may have used it as scratch before the first allocation, and an
  // overflowing stack may have reached it.
  return {begin, end - begin, end};
}

void write_error([[maybe_unused]] const char* line, [[maybe_unused]] size_t length) {
#if defined(__wasi__)
  if (&writev != nullptr) {
    const iovec whole = {const_cast<char*>(line), length};
    writev(STDERR_FILENO, &whole, 1);
  } else if (&write != nullptr) {
    write(STDERR_FILENO, line, length);
  }
#endif
}

void stop() { __builtin_trap(); }

void set_out_of_memory() {
#if defined(__wasi__)
  if (&errno != nullptr) errno = ENOMEM;
#endif
}

void set_invalid_argument() {
#if defined(__wasi__)
  if (&errno != nullptr) errno = EINVAL;
#endif
}

}  // namespace ashlar::os
