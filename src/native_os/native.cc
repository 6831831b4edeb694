// The OS layer of Linux: a range of addresses that is reserved bit by bit and made usable from its
// beginning, so that memory grows without gaps; chunks of mmap where the range cannot grow.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os.h"

namespace ashlar::os {

namespace {

// Addresses are reserved as far again as memory was taken, at least so much at a time: a large
// reservation would count against a limit that the program sets itself later.
constexpr size_t least_reservation = size_t{64} << 20;
// Free addresses behind the first reservation are looked for, so that the next ones can follow it.
constexpr size_t room_bytes = sizeof(void*) == 8 ? size_t{64} << 30 : size_t{256} << 20;

struct Range {
  uintptr_t next;  // first address not handed out
  uintptr_t end;
};

constinit Range range{};
constinit size_t taken_bytes = 0;

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
// The thread that is inside fork(), or 0. It holds the lock for that time, and handlers of fork
// that others registered may allocate.
constinit pthread_t forking_thread = 0;

uintptr_t address_of(void* memory) { return reinterpret_cast<uintptr_t>(memory); }
void* pointer_to(uintptr_t address) { return reinterpret_cast<void*>(address); }

bool below_limit(uintptr_t begin, size_t bytes) {
  return begin + (bytes - 1) <= (uint64_t{1} << address_bits) - 1;
}

void* map_addresses(uintptr_t place, size_t bytes, int flags) {
  return mmap(pointer_to(place), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

// The first reservation: at the begin of a hole in the address space.
bool reserve_first(size_t bytes) {
  const size_t room = bytes < room_bytes ? room_bytes : bytes + grow_unit_bytes;
  void* const memory = map_addresses(0, room, 0);
  if (memory == MAP_FAILED) return false;
  const uintptr_t hole = address_of(memory);
  const uintptr_t begin = (hole + grow_unit_bytes - 1) & ~(grow_unit_bytes - 1);
  const uintptr_t end = begin + bytes;
  if (begin != hole) munmap(memory, begin - hole);
  munmap(pointer_to(end), hole + room - end);
  range = {begin, end};
  return true;
}

// Makes room for `bytes` in the range; false: it cannot be there.
bool reserve(size_t bytes) {
  if (bytes <= range.end - range.next) return true;
  size_t wanted = taken_bytes < least_reservation ? least_reservation : taken_bytes;
  if (wanted < bytes) wanted = (bytes + grow_unit_bytes - 1) & ~(grow_unit_bytes - 1);
  if (range.end == 0) return reserve_first(wanted);
  void* const memory = map_addresses(range.end, wanted, MAP_FIXED_NOREPLACE);
  if (memory == MAP_FAILED) return false;
  // A kernel that does not know the flag takes the address for a hint.
  if (address_of(memory) != range.end) {
    munmap(memory, wanted);
    return false;
  }
  range.end += wanted;
  return true;
}

bool inside_fork() {
  const pthread_t thread = __atomic_load_n(&forking_thread, __ATOMIC_RELAXED);
  return thread != 0 && thread == pthread_self();
}

void before_fork() {
  pthread_mutex_lock(&mutex);
  __atomic_store_n(&forking_thread, pthread_self(), __ATOMIC_RELAXED);
}

void after_fork() {
  __atomic_store_n(&forking_thread, pthread_t{0}, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&mutex);
}

}  // namespace

// Not at the first malloc: that may be made by pthread_atfork itself, which holds glibc's own lock
// while it allocates. Before anybody else: handlers run in the reverse order, and one that takes a
// lock of its own must not wait for a thread that holds it and waits for us. So: the first
// constructor; of all libraries' where the linker is told so (-z initfirst); and in programs, even
// before those (override_libc.cc).
//
// g++ warns that such priorities are a C library's; clang does not know the warning.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
[[gnu::constructor(1)]] void register_fork_handlers() {
  static constinit bool registered = false;
  if (registered) return;
  registered = true;
  pthread_atfork(before_fork, after_fork, after_fork);
}

Memory take_memory(size_t bytes) {
  int const saved_errno = errno;
  Memory memory{0, 0, 0};
  if (reserve(bytes)) {
    if (mprotect(pointer_to(range.next), bytes, PROT_READ | PROT_WRITE) == 0) {
      memory = {range.next, bytes, range.next};
      range.next += bytes;
    }
  } else {
    void* const chunk =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk != MAP_FAILED) {
      memory = {address_of(chunk), bytes, address_of(chunk)};
    }
  }
  if (memory.bytes != 0 && !below_limit(memory.begin, memory.bytes)) memory = {0, 0, 0};
  taken_bytes += memory.bytes;
  errno = saved_errno;
  return memory;
}

Memory initial_memory() { return {0, 0, 0}; }

void write_error(const char* line, size_t length) {
  while (length > 0) {
    const ssize_t written = write(STDERR_FILENO, line, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    line += written;
    length -= static_cast<size_t>(written);
  }
}

void stop() { abort(); }

void set_out_of_memory() { errno = ENOMEM; }
void set_invalid_argument() { errno = EINVAL; }

void lock() {
  if (!inside_fork()) pthread_mutex_lock(&mutex);
}

void unlock() {
  if (!inside_fork()) pthread_mutex_unlock(&mutex);
}

}  // namespace ashlar::os
