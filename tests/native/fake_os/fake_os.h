// The fake OS: linear memory inside a native process. It only grows, refuses at a limit, and lets
// strangers grow in between, so that the logic of the wasm targets runs under native sanitizers.
//
//   base          initial                        end                    base + limit
//   | program's   | ours before   | grown by us  |                      |
//   | own data    | the first grow| or strangers | no access            | refused
//
// All of it is one reservation without access rights: touching memory that nobody grew is a crash.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fake_os {

// How the reservation and the linker's heap look. Only before the allocator's first call.
struct Setup {
  size_t initial_offset = 0;   // the linker's heap begins here; below lies the program's own data
  size_t initial_bytes = 0;    // and has this size; their sum is a multiple of 64 KiB
  bool initial_dirty = false;  // somebody wrote to it before (as after a snapshot)
  bool at_top = false;         // 32-bit: the limit lies at the last 64 KiB that a process can have
  size_t reserve_bytes = 0;    // how much memory there can be at most; 0: what a process can have
};
void set_up(const Setup& setup);

// How many bytes linear memory may have, as a wasm maximum: a multiple of 64 KiB.
void set_limit(size_t bytes);
size_t limit();
size_t reserved();

// Linear memory's size now, everybody's part included.
size_t size();
uintptr_t base();

// Takes 64 KiB `units` for a stranger and fills them with a pattern. False when refused.
bool stranger_grow(size_t units);
// How many units a stranger takes just before each of the allocator's calls; 0 stops that.
void stranger_before_every_grow(size_t units);
// Whether every byte of every stranger is as it was written.
bool strangers_intact();

// Refuses the n-th call from now on and no other (1 is the next), 0 none.
void refuse_nth(unsigned n);

// The allocator's calls so far, the refused ones included, and the bytes that it got.
unsigned grow_calls();
unsigned refused_calls();
size_t bytes_taken();

// Bytes of [begin, begin + bytes) that lie in OS pages which anybody has written to.
size_t touched_bytes(uintptr_t begin, size_t bytes);

// From now on fresh memory holds a mark instead of the zeros that the allocator is told of, so that
// what it writes there can be counted to the byte.
void mark_fresh_memory(bool on);
size_t written_bytes(const void* begin, size_t bytes);

// The last line that the allocator wrote, without its newline; "" when there was none.
const char* last_line();

}  // namespace fake_os
