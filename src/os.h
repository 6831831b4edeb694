// The operating system as the core sees it: this is the whole contract. One folder per system
// implements it (wasm_os, native_os; the tests bring a third, tests/native/fake_os), and only these
// folders and the selector below know a platform's name.
#pragma once

#include "base.h"

#if defined(ASHLAR_FAKE_OS)
#include "fake_os/traits.h"
#elif defined(__wasm__)
#include "wasm_os/traits.h"
#elif defined(__linux__)
#include "native_os/traits.h"
#else
#error "ashlar: no OS layer for this target; see CONTRIBUTING.md, A new target"
#endif

// Each traits.h defines, in namespace ashlar::os:
//   constexpr size_t alignment          what malloc promises: 8 or 16
//   constexpr size_t grow_unit_bytes    smallest step in which memory is taken; a power of two
//   constexpr unsigned address_bits     addresses of our memory lie below 1 << address_bits
//   constexpr unsigned map_leaf_bits    log2 of the granules that one leaf of the page map covers
//   constexpr bool may_pass_half        a block may be larger than PTRDIFF_MAX
//   constexpr bool has_threads          calls come from several threads: one lock around each
namespace ashlar::os {

// Memory that is now the allocator's, whole grow units. bytes == 0: refused. Bytes from zero_from
// on were never written by anyone and read as zero.
struct Memory {
  uintptr_t begin;
  size_t bytes;
  uintptr_t zero_from;
};

// Takes `bytes` of memory, a positive multiple of grow_unit_bytes. It may or may not lie next to
// what was given before: the caller joins what touches. The last bytes of the address space may
// belong to it: compute ends in wrapping arithmetic. Never calls back. Lock: held.
Memory take_memory(size_t bytes);

// Memory that is ours before anything was taken (the linker's heap), or bytes == 0. Called once.
Memory initial_memory();

// Writes one line to where the program's errors go, when it has such a place. Must not allocate
// and must add no import to a wasm module that lacks one for it.
void write_error(const char* line, size_t length);

// Ends the program as abort() does; the lock is not held.
[[noreturn]] void stop();

// Sets errno where the target has one.
void set_out_of_memory();
void set_invalid_argument();

// One lock for the whole allocator; defined when has_threads.
void lock();
void unlock();
// Makes the lock outlive fork(). Once for all, before others register handlers of their own; the OS
// layer sees to it in a library, and the program's start in a program. Defined when has_threads.
void register_fork_handlers();

}  // namespace ashlar::os
