// What the parts of the Emscripten layer share. A header of its own, because a program may bring
// its own sbrk (then emscripten_sbrk.cc is not linked) and may be without JavaScript (then
// emscripten_standalone.cc is).
#pragma once

#include "os.h"

namespace ashlar::os {

// Where the break stands. Everything below it is taken.
struct Break {
  uintptr_t current;  // 0: not looked up yet, it stands at __heap_base
  uintptr_t lowest;   // it may go down to here
  uintptr_t highest;  // nobody who takes memory by sbrk has written above
  // Linear memory that was there at the start, or that sbrk grew. In 64 KiB pages, since it may end
  // at 2^32. 0: not looked up yet.
  size_t own_pages;
};

}  // namespace ashlar::os

extern "C" {
// Weak, and not hidden: position-independent code must see null where it is missing.
[[gnu::weak]] extern ashlar::os::Break ashlar_break;

// malloc_set_footprint_limit() sets it; no more than this is ever taken.
extern size_t ashlar_footprint_limit;

// emscripten.cc has both for a program with JavaScript, weak; emscripten_standalone.cc overrides
// them.

// Highest address up to which emscripten_resize_heap may be asked to grow.
size_t ashlar_growth_limit();
// `line` ends in a newline and a zero, which `length` does not count.
void ashlar_print_error(const char* line, size_t length);
}
