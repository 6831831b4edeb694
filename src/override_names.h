// How the names that programs call are defined, by target.
#pragma once

#include "base.h"

// Strong on WASI and natively: a program that defines one of the libc's names itself, or links the
// libc's own malloc as well, fails to link instead of running two allocators. Weak on Emscripten:
// its sanitizers define the same names, and call ours underneath. All others are weak everywhere.
#define ASHLAR_EXTRA_NAME extern "C" [[gnu::weak, gnu::visibility("default")]]
#if defined(__EMSCRIPTEN__)
#define ASHLAR_LIBC_NAME ASHLAR_EXTRA_NAME
#else
#define ASHLAR_LIBC_NAME extern "C" [[gnu::visibility("default")]]
#endif

// Defined beside malloc. A member that allocates from the heap itself refers to it, so that malloc
// is linked as well: where another malloc was linked already, that fails.
extern "C" const unsigned char ashlar_is_malloc;
#define ASHLAR_LINK_MALLOC \
  [[gnu::used]] static const unsigned char* const ashlar_link_malloc = &ashlar_is_malloc

// A file that only calls one of them declares it without these words: a weak reference would not
// link it in.
