// sbrk, brk and emscripten_get_sbrk_ptr. Emscripten keeps them beside its malloc, so a program that
// has ours instead (or -sMALLOC=none) lacks them; and SAFE_HEAP reads the break.
//
// A program may grow memory itself, behind the break. What it took begins where the memory that was
// ours ended: the break steps over it.
#include <emscripten/heap.h>
#include <errno.h>
#include <unistd.h>

#include "wasm_os/emscripten_break.h"

extern "C" {

extern unsigned char __heap_base;
[[gnu::weak]] int* __errno_location();

ashlar::os::Break ashlar_break;

}  // extern "C"

namespace {

using ashlar::os::grow_unit_bytes;

void look_up_pages() {
  if (ashlar_break.own_pages == 0) ashlar_break.own_pages = __builtin_wasm_memory_size(0);
}

// Before any code of the program's that could grow memory.
[[gnu::constructor(101)]] void note_initial_memory() { look_up_pages(); }

void* fail() {
  if (&__errno_location != nullptr) *__errno_location() = ENOMEM;
  return reinterpret_cast<void*>(-1);
}

}  // namespace

extern "C" {

[[gnu::weak, gnu::visibility("default")]] uintptr_t* emscripten_get_sbrk_ptr() {
  // Not a constant to start with: MAIN_MODULE moves __heap_base before it starts the program.
  if (ashlar_break.current == 0) {
    ashlar_break.current = reinterpret_cast<uintptr_t>(&__heap_base);
    ashlar_break.lowest = ashlar_break.current;
    ashlar_break.highest = ashlar_break.current;
  }
  return &ashlar_break.current;
}

// Negative: the break goes down, where it can. Where it would pass its lowest point, the number is
// one of 2 GiB and more: the same as with Emscripten's sbrk, and no number can mean both.
[[gnu::weak, gnu::visibility("default")]] void* sbrk(intptr_t increment) {
  constexpr uint64_t address_end = uint64_t{1} << ashlar::os::address_bits;
  emscripten_get_sbrk_ptr();
  look_up_pages();

  uint64_t start = ashlar_break.current;
  // Users count on 4-byte alignment.
  const uint64_t bytes = (static_cast<uintptr_t>(increment) + uint64_t{3}) & ~uint64_t{3};
  uint64_t end = start + bytes;
  if (end >= address_end + ashlar_break.lowest) {
    ashlar_break.current = static_cast<uintptr_t>(end - address_end);
    return reinterpret_cast<void*>(static_cast<uintptr_t>(start));
  }
  if (end > uint64_t{ashlar_break.own_pages} * grow_unit_bytes) {
    const size_t present_pages = __builtin_wasm_memory_size(0);
    const uint64_t present = uint64_t{present_pages} * grow_unit_bytes;
    if (present_pages != ashlar_break.own_pages) {
      start = present;
      end = start + bytes;
    }
    // The break itself must be a number below 2^32.
    if (end >= address_end) return fail();
    if (end > present && emscripten_resize_heap(static_cast<size_t>(end)) == 0) return fail();
    ashlar_break.own_pages = __builtin_wasm_memory_size(0);
    if (start != ashlar_break.current) ashlar_break.lowest = static_cast<uintptr_t>(start);
  }
  ashlar_break.current = static_cast<uintptr_t>(end);
  if (ashlar_break.highest < ashlar_break.current) ashlar_break.highest = ashlar_break.current;
  return reinterpret_cast<void*>(static_cast<uintptr_t>(start));
}

[[gnu::weak, gnu::visibility("default")]] int brk(void* end) {
  const uintptr_t current = *emscripten_get_sbrk_ptr();
  const uintptr_t by = reinterpret_cast<uintptr_t>(end) - current;
  return sbrk(static_cast<intptr_t>(by)) == reinterpret_cast<void*>(-1) ? -1 : 0;
}

}  // extern "C"
