// operator new and delete, all forms, weak, in a member of their own: a program may replace any of
// them, and a C program never links them.
//
// As the standard wants it, a form that a program leaves to us calls the one that it may have
// replaced: new[] and nothrow new call new, delete[] and the sized forms call delete.
#include "api.h"
#include "os.h"
#include "override_names.h"

ASHLAR_LINK_MALLOC;

// Declared here rather than by <new>: this compiles against any C++ library, and without one.
namespace std {

struct nothrow_t;
enum class align_val_t : size_t {};
using new_handler = void (*)();
new_handler get_new_handler() noexcept;

// Of libstdc++ and libc++; throws std::bad_alloc in a library that has exceptions. Weak on WASI,
// whose libc++ has none: it prints there, and would import what it takes to print.
#if defined(__wasi__)
[[gnu::weak]]
#endif
[[noreturn]] void __throw_bad_alloc();

}  // namespace std

#if defined(__wasm__) && !defined(__PIC__)
// Every handler calls it. Whether a program has exceptions is decided when it is linked, and
// without a handler it makes no difference to whom they could be thrown. Emscripten's dynamic
// linking can't take the address of this function: there the C++ library decides, and aborts
// without our line.
extern "C" [[gnu::weak]] void* __cxa_begin_catch(void*) noexcept;
#endif

#define ASHLAR_NEW [[gnu::weak, gnu::visibility("default")]]

// What the forms are that a program may have replaced. Two names, so that it can be seen.
extern "C" {
void* ashlar_own_new(size_t size);
void* ashlar_own_new_array(size_t size);
void* ashlar_own_aligned_new(size_t size, std::align_val_t alignment);
void* ashlar_own_aligned_new_array(size_t size, std::align_val_t alignment);
}

ASHLAR_NEW [[gnu::alias("ashlar_own_new")]] void* operator new(size_t size);
ASHLAR_NEW [[gnu::alias("ashlar_own_new_array")]] void* operator new[](size_t size);
ASHLAR_NEW [[gnu::alias("ashlar_own_aligned_new")]] void* operator new(  //
    size_t size, std::align_val_t alignment);
ASHLAR_NEW [[gnu::alias("ashlar_own_aligned_new_array")]] void* operator new[](  //
    size_t size, std::align_val_t alignment);

namespace {

bool can_throw() {
#if defined(__wasi__)
  return &__cxa_begin_catch != nullptr && &std::__throw_bad_alloc != nullptr;
#elif defined(__wasm__) && !defined(__PIC__)
  return &__cxa_begin_catch != nullptr;
#else
  return true;
#endif
}

[[noreturn]] slow_path void throw_bad_alloc(size_t size) {
  if (can_throw()) std::__throw_bad_alloc();

  char line[80];
  size_t length = 0;
  const auto add = [&](const char* words) {
    for (; *words != 0; ++words) line[length++] = *words;
  };
  add("ashlar: out of memory: operator new of ");
  size_t power = 1;
  while (size / power >= 10) power *= 10;
  for (; power > 0; power /= 10) line[length++] = static_cast<char>('0' + size / power % 10);
  add(" bytes\n");
  line[length] = 0;
  ashlar::os::write_error(line, length);
  ashlar::os::stop();
}

// After a refusal: asks again as long as the program's handler may have made room. Null when it has
// no handler.
template <class Allocate>
slow_path void* allocate_by_handler(Allocate allocate) {
  while (const std::new_handler handler = std::get_new_handler()) {
    handler();
    if (void* const block = allocate()) return block;
  }
  return nullptr;
}

void* allocate(size_t size) {
  if (void* const block = ashlar::allocate(size)) [[likely]]
    return block;
  return allocate_by_handler([=] { return ashlar::allocate(size); });
}

void* allocate(size_t size, std::align_val_t alignment) {
  const auto once = [=] { return ashlar::allocate_aligned(static_cast<size_t>(alignment), size); };
  if (void* const block = once()) [[likely]]
    return block;
  return allocate_by_handler(once);
}

// A form that may not throw, over one that may. A build of this file without exceptions can't stop
// one that the program's own operator new or its handler throws: it passes on to the caller.
template <class Allocate>
void* or_null(Allocate allocate) {
#if defined(__cpp_exceptions)
  try {
    return allocate();
  } catch (...) {
    return nullptr;
  }
#else
  return allocate();
#endif
}

using New = void* (*)(size_t);
using AlignedNew = void* (*)(size_t, std::align_val_t);

bool is(New replaceable, New own) { return replaceable == own; }
bool is(AlignedNew replaceable, AlignedNew own) { return replaceable == own; }

}  // namespace

extern "C" {

void* ashlar_own_new(size_t size) {
  if (void* const block = allocate(size)) [[likely]]
    return block;
  throw_bad_alloc(size);
}

void* ashlar_own_new_array(size_t size) { return ::operator new(size); }

void* ashlar_own_aligned_new(size_t size, std::align_val_t alignment) {
  if (void* const block = allocate(size, alignment)) [[likely]]
    return block;
  throw_bad_alloc(size);
}

void* ashlar_own_aligned_new_array(size_t size, std::align_val_t alignment) {
  return ::operator new(size, alignment);
}

}  // extern "C"

ASHLAR_NEW void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return or_null(
      [=] { return is(&::operator new, &ashlar_own_new) ? allocate(size) : ::operator new(size); });
}

ASHLAR_NEW void* operator new(size_t size, std::align_val_t alignment,
                              const std::nothrow_t&) noexcept {
  return or_null([=] {
    return is(&::operator new, &ashlar_own_aligned_new) ? allocate(size, alignment)
                                                        : ::operator new(size, alignment);
  });
}

ASHLAR_NEW void* operator new[](size_t size, const std::nothrow_t& nothrow) noexcept {
  if (is(&::operator new[], &ashlar_own_new_array)) return ::operator new(size, nothrow);
  return or_null([=] { return ::operator new[](size); });
}

ASHLAR_NEW void* operator new[](size_t size, std::align_val_t alignment,
                                const std::nothrow_t& nothrow) noexcept {
  if (is(&::operator new[], &ashlar_own_aligned_new_array)) {
    return ::operator new(size, alignment, nothrow);
  }
  return or_null([=] { return ::operator new[](size, alignment); });
}

ASHLAR_NEW void operator delete(void* block) noexcept { ashlar::release(block); }

ASHLAR_NEW void operator delete(void* block, std::align_val_t) noexcept { ashlar::release(block); }

ASHLAR_NEW void operator delete[](void* block) noexcept { ::operator delete(block); }

ASHLAR_NEW void operator delete[](void* block, std::align_val_t alignment) noexcept {
  ::operator delete(block, alignment);
}

ASHLAR_NEW void operator delete(void* block, size_t) noexcept { ::operator delete(block); }

ASHLAR_NEW void operator delete[](void* block, size_t) noexcept { ::operator delete[](block); }

ASHLAR_NEW void operator delete(void* block, size_t, std::align_val_t alignment) noexcept {
  ::operator delete(block, alignment);
}

ASHLAR_NEW void operator delete[](void* block, size_t, std::align_val_t alignment) noexcept {
  ::operator delete[](block, alignment);
}

ASHLAR_NEW void operator delete(void* block, const std::nothrow_t&) noexcept {
  ::operator delete(block);
}

ASHLAR_NEW void operator delete[](void* block, const std::nothrow_t&) noexcept {
  ::operator delete[](block);
}

ASHLAR_NEW void operator delete(void* block, std::align_val_t alignment,
                                const std::nothrow_t&) noexcept {
  ::operator delete(block, alignment);
}

ASHLAR_NEW void operator delete[](void* block, std::align_val_t alignment,
                                  const std::nothrow_t&) noexcept {
  ::operator delete[](block, alignment);
}
