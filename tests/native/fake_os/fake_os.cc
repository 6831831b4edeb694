#include "fake_os/fake_os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os.h"

namespace fake_os {
namespace {

constexpr size_t unit = ashlar::os::grow_unit_bytes;
constexpr unsigned char stranger_byte = 0xA7;
constexpr unsigned char dirt = 0x5C;
constexpr unsigned char mark = 0xE3;

struct Range {
  uintptr_t begin;
  size_t bytes;
};

struct State {
  Setup setup;
  uintptr_t base = 0;
  size_t reserved = 0;
  size_t size = 0;
  size_t limit = SIZE_MAX;
  size_t stranger_units = 0;
  unsigned refuse_in = 0;
  unsigned grow_calls = 0;
  unsigned refused_calls = 0;
  size_t bytes_taken = 0;
  Range strangers[4096];
  size_t stranger_count = 0;
  bool marked = false;
  char line[256] = "";
};
State state;

[[noreturn]] void give_up(const char* why) {
  (void)!write(2, why, strlen(why));
  _exit(99);
}

unsigned char* pointer(uintptr_t address) { return reinterpret_cast<unsigned char*>(address); }

void* reserve(uintptr_t at, size_t bytes) {
  int const flags =
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED_NOREPLACE : 0);
  void* const got = mmap(pointer(at), bytes, PROT_NONE, flags, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  (void)madvise(got, bytes, MADV_NOHUGEPAGE);  // or touched_bytes() sees 2 MiB for one byte
  return got;
}

// As much as the process can have: the size depends on what else is mapped (a sanitizer's shadow).
// Aligned as if it began at address 0, so that every run meets the same borders.
void reserve_anywhere() {
  constexpr size_t border = size_t{16} << 20;
  size_t bytes = sizeof(void*) == 8 ? size_t{1} << 36 : size_t{3} << 29;
  size_t least = size_t{1} << 28;
  if (state.setup.reserve_bytes != 0) bytes = least = state.setup.reserve_bytes;
  for (; bytes >= least; bytes -= bytes / 4 / unit * unit) {
    void* const got = reserve(0, bytes + border);
    if (got == nullptr) continue;
    state.base = (reinterpret_cast<uintptr_t>(got) + border - 1) / border * border;
    state.reserved = bytes;
    return;
  }
  give_up("fake_os: no room to reserve linear memory\n");
}

// The longest run below the last 64 KiB boundary that a 32-bit process can reach. What is mapped up
// there differs from run to run (the stack, the vdso), so smaller and lower ones are tried in turn.
void reserve_at_top() {
  if (sizeof(void*) == 8) give_up("fake_os: at_top is for 32-bit processes\n");
  uintptr_t const top = uintptr_t{0xFFFF0000u};
  for (size_t bytes = size_t{64} << 20; bytes >= 4 * unit; bytes = bytes / 2 / unit * unit) {
    if (reserve(top - bytes, bytes) == nullptr) continue;
    state.base = top - bytes;
    state.reserved = bytes;
    return;
  }
}

// Where the kernel puts the stack is drawn for each process, and sometimes that is the very top:
// then the program starts anew, since its children have the same layout.
[[gnu::constructor]] void start_with_the_top_free(int, char** arguments, char**) {
  if (sizeof(void*) == 8) return;
  constexpr size_t least = 4 * unit;
  if (void* const top = reserve(uintptr_t{0xFFFF0000u} - least, least); top != nullptr) {
    munmap(top, least);
    return;
  }
  const char* const before = getenv("ASHLAR_STARTS");
  int const starts = before == nullptr ? 1 : atoi(before) + 1;
  if (starts > 60) return;
  char text[16];
  snprintf(text, sizeof text, "%d", starts);
  setenv("ASHLAR_STARTS", text, 1);
  execv("/proc/self/exe", arguments);
}

void begin() {
  if (state.base != 0) return;
  if (state.setup.at_top) {
    reserve_at_top();
    if (state.base == 0) give_up("fake_os: the top of the address space is taken\n");
  } else {
    reserve_anywhere();
  }
  if (state.limit > state.reserved) state.limit = state.reserved;
  size_t const first = state.setup.initial_offset + state.setup.initial_bytes;
  if (first % unit != 0 || first > state.limit) give_up("fake_os: bad initial memory\n");
  if (first == 0) return;
  if (mprotect(pointer(state.base), first, PROT_READ | PROT_WRITE) != 0)
    give_up("fake_os: mprotect\n");
  if (state.setup.initial_offset != 0) {
    memset(pointer(state.base), stranger_byte, state.setup.initial_offset);
    state.strangers[state.stranger_count++] = {state.base, state.setup.initial_offset};
  }
  if (state.setup.initial_dirty)
    memset(pointer(state.base + state.setup.initial_offset), dirt, state.setup.initial_bytes);
  state.size = first;
}

// memory.grow: the address of `bytes` more bytes, or 0.
uintptr_t grow(size_t bytes) {
  begin();
  if (bytes > state.limit || state.size > state.limit - bytes) return 0;
  uintptr_t const at = state.base + state.size;
  if (mprotect(pointer(at), bytes, PROT_READ | PROT_WRITE) != 0) return 0;
  state.size += bytes;
  if (state.marked) memset(pointer(at), mark, bytes);
  return at;
}

}  // namespace

void set_up(const Setup& setup) {
  if (state.base != 0) give_up("fake_os: set_up comes too late\n");
  state.setup = setup;
  begin();
}

void set_limit(size_t bytes) {
  begin();
  state.limit = bytes < state.reserved ? bytes / unit * unit : state.reserved;
}

size_t limit() {
  begin();
  return state.limit;
}

size_t reserved() {
  begin();
  return state.reserved;
}

size_t size() { return state.size; }

uintptr_t base() {
  begin();
  return state.base;
}

bool stranger_grow(size_t units) {
  if (state.stranger_count == sizeof state.strangers / sizeof state.strangers[0])
    give_up("fake_os: too many strangers\n");
  uintptr_t const at = grow(units * unit);
  if (at == 0) return false;
  memset(pointer(at), stranger_byte, units * unit);
  state.strangers[state.stranger_count++] = {at, units * unit};
  return true;
}

void stranger_before_every_grow(size_t units) { state.stranger_units = units; }

bool strangers_intact() {
  for (size_t i = 0; i < state.stranger_count; ++i) {
    const unsigned char* const bytes = pointer(state.strangers[i].begin);
    // Equal to itself shifted by one, and the first byte right: every byte is right.
    if (bytes[0] != stranger_byte || memcmp(bytes, bytes + 1, state.strangers[i].bytes - 1) != 0)
      return false;
  }
  return true;
}

void refuse_nth(unsigned n) { state.refuse_in = n; }
unsigned grow_calls() { return state.grow_calls; }
unsigned refused_calls() { return state.refused_calls; }
size_t bytes_taken() { return state.bytes_taken; }

size_t touched_bytes(uintptr_t begin, size_t bytes) {
  constexpr size_t os_page = 4096;
  size_t touched = 0;
  unsigned char resident[1024];
  uintptr_t const end = begin + bytes;
  for (uintptr_t at = begin / os_page * os_page; at < end; at += sizeof resident * os_page) {
    size_t const left = (end - at + os_page - 1) / os_page;
    size_t const count = left < sizeof resident ? left : sizeof resident;
    if (mincore(pointer(at), count * os_page, resident) != 0) give_up("fake_os: mincore\n");
    for (size_t i = 0; i < count; ++i) touched += (resident[i] & 1) * os_page;
    if (left <= sizeof resident) break;
  }
  return touched;
}

void mark_fresh_memory(bool on) { state.marked = on; }

size_t written_bytes(const void* begin, size_t bytes) {
  const unsigned char* const at = static_cast<const unsigned char*>(begin);
  size_t written = 0;
  for (size_t i = 0; i < bytes; ++i) written += at[i] != mark;
  return written;
}

const char* last_line() { return state.line; }

}  // namespace fake_os

namespace ashlar::os {

using fake_os::state;

Memory take_memory(size_t bytes) {
  ++state.grow_calls;
  if (bytes == 0 || bytes % grow_unit_bytes != 0)
    fake_os::give_up("fake_os: not whole grow units\n");
  if (state.stranger_units != 0) (void)fake_os::stranger_grow(state.stranger_units);
  bool const refused = state.refuse_in != 0 && --state.refuse_in == 0;
  uintptr_t const at = refused ? 0 : fake_os::grow(bytes);
  if (at == 0) {
    ++state.refused_calls;
    return {0, 0, 0};
  }
  state.bytes_taken += bytes;
  return {at, bytes, at};
}

Memory initial_memory() {
  static bool called = false;
  if (called) fake_os::give_up("fake_os: initial_memory was called twice\n");
  called = true;
  fake_os::begin();
  if (state.setup.initial_bytes == 0) return {0, 0, 0};
  uintptr_t const at = state.base + state.setup.initial_offset;
  return {at, state.setup.initial_bytes,
          state.setup.initial_dirty ? at + state.setup.initial_bytes : at};
}

void write_error(const char* line, size_t length) {
  size_t const kept = length < sizeof state.line ? length : sizeof state.line - 1;
  memcpy(state.line, line, kept);
  state.line[kept] = '\0';
  if (kept != 0 && state.line[kept - 1] == '\n') state.line[kept - 1] = '\0';
  (void)!write(2, line, length);
}

void stop() { abort(); }

void set_out_of_memory() { errno = ENOMEM; }
void set_invalid_argument() { errno = EINVAL; }

}  // namespace ashlar::os
