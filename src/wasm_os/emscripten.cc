// The OS layer of Emscripten. All memory is taken by moving the break: sbrk grows linear memory
// through emscripten_resize_heap, which also renews the views that JavaScript has on it.
#include <emscripten/console.h>
#include <emscripten/heap.h>
#include <errno.h>
#include <unistd.h>

#include "wasm_os/emscripten_break.h"

// A type of the global namespace, whose functions are looked up when print_line is used.
struct AshlarLine {
  const char* text;
  fast_path operator const char*() const { return text; }
};

namespace {

// Emscripten renamed it. Not emscripten_console_error: STANDALONE_WASM makes that one of stdio.
template <class Line>
void print_line(Line line) {
  if constexpr (requires { emscripten_err(line); }) {
    emscripten_err(line);
  } else {
    _emscripten_err(line);
  }
}

}  // namespace

extern "C" {

// A program that never refers to errno can't see it set.
[[gnu::weak]] int* __errno_location();

// Defined by the override archive: stops a program in which another malloc was linked too.
[[gnu::weak]] void ashlar_require_single_malloc();

constinit size_t ashlar_footprint_limit = SIZE_MAX;

[[gnu::weak]] size_t ashlar_growth_limit() { return emscripten_get_heap_max(); }

[[gnu::weak]] void ashlar_print_error(const char* line, size_t length) {
  // JavaScript ends the line itself.
  char text[128];
  size_t end = 0;
  for (; end < sizeof text - 1 && end < length && line[end] != '\n'; ++end) text[end] = line[end];
  text[end] = 0;
  print_line(AshlarLine{text});
}

}  // extern "C"

namespace ashlar::os {

namespace {

constinit size_t taken_bytes = 0;

constexpr uintptr_t refused = static_cast<uintptr_t>(-1);

// Also by 2 GiB and more: Emscripten's sbrk, as ours, takes the sign for a part of the number where
// the break can't go down that far.
uintptr_t move_break(size_t by) {
  return reinterpret_cast<uintptr_t>(sbrk(static_cast<intptr_t>(by)));
}

void set_errno(int value) {
  if (&__errno_location != nullptr) *__errno_location() = value;
}

// Asked for first, because emscripten_resize_heap ends a program without memory growth rather than
// refuse it, and a smaller request may still fit.
bool within_limit(uintptr_t start, size_t bytes) {
  const uint64_t end = uint64_t{start} + bytes;
  const uint64_t present = uint64_t{__builtin_wasm_memory_size(0)} * grow_unit_bytes;
  return end <= present || end <= ashlar_growth_limit();
}

}  // namespace

Memory take_memory(size_t bytes) {
  constexpr Memory nothing = {0, 0, 0};
  if (&ashlar_require_single_malloc != nullptr) ashlar_require_single_malloc();

  if (bytes > ashlar_footprint_limit || taken_bytes > ashlar_footprint_limit - bytes)
    return nothing;

  const uintptr_t start = move_break(0);
  // Known only when the break is the one that our own sbrk moves.
  const bool highest_known = &ashlar_break != nullptr && ashlar_break.current == start;
  const uintptr_t highest = highest_known ? ashlar_break.highest : refused;

  const size_t padding = (0 - start) & (alignment - 1);
  size_t wanted = 0;
  if (__builtin_add_overflow(bytes, padding, &wanted)) return nothing;
  if (!within_limit(start, wanted)) return nothing;
  const uintptr_t taken = move_break(wanted);
  if (taken == refused) return nothing;
  taken_bytes += bytes;
  // The program may move the break down again, but not below what is ours.
  if (highest_known) ashlar_break.lowest = ashlar_break.current;

  // Elsewhere than at `start` when sbrk stepped over memory that a stranger grew; on a page then.
  const uintptr_t begin = taken == start ? start + padding : taken;
  const uintptr_t end = begin + bytes;
  return {begin, bytes, highest < begin ? begin : (highest < end ? highest : end)};
}

// Memory from __heap_base on is sbrk's.
Memory initial_memory() { return {0, 0, 0}; }

void write_error(const char* line, size_t length) { ashlar_print_error(line, length); }

void stop() { __builtin_trap(); }

void set_out_of_memory() { set_errno(ENOMEM); }
void set_invalid_argument() { set_errno(EINVAL); }

}  // namespace ashlar::os
