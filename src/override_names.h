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

// A file that only calls one of them declares it without these words: a weak reference would not
// link it in.
