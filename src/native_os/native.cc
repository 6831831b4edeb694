// The OS layer of Linux: a reserved range of addresses that is made usable from its beginning, so
// that memory grows without gaps; further chunks of mmap where the range is refused or used up.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os.h"

namespace ashlar::os {

namespace {

constexpr size_t mebibyte = size_t{1} << 20;
constexpr size_t reservation_bytes = sizeof(void*) == 8 ? (mebibyte << 16) : 256 * mebibyte;

struct Range {
  uintptr_t next;  // first address not handed out
  uintptr_t end;
};

constinit Range range{};
constinit bool reservation_tried = false;

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
// The thread that is inside fork(), or 0. It holds the lock for that time, and handlers of fork
// that others registered may allocate.
constinit pthread_t forking_thread = 0;

uintptr_t address_of(void* memory) { return reinterpret_cast<uintptr_t>(memory); }
void* pointer_to(uintptr_t address) { return reinterpret_cast<void*>(address); }

bool below_limit(uintptr_t begin, size_t bytes) {
  return begin + (bytes - 1) <= (uint64_t{1} << address_bits) - 1;
}

void reserve_range() {
  reservation_tried = true;
  // Under a limit the range would use up what the program needs for its threads and files.
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return;
  void* const memory = mmap(nullptr, reservation_bytes + grow_unit_bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  const uintptr_t begin = (address_of(memory) + grow_unit_bytes - 1) & ~(grow_unit_bytes - 1);
  if (!below_limit(begin, reservation_bytes)) {
    munmap(memory, reservation_bytes + grow_unit_bytes);
    return;
  }
  range = {begin, begin + reservation_bytes};
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
  if (!reservation_tried) reserve_range();
  if (bytes <= range.end - range.next) {
    if (mprotect(pointer_to(range.next), bytes, PROT_READ | PROT_WRITE) == 0) {
      memory = {range.next, bytes, range.next};
      range.next += bytes;
    }
  } else {
    void* const chunk =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk != MAP_FAILED) {
      const uintptr_t begin = address_of(chunk);
      if (below_limit(begin, bytes)) {
        memory = {begin, bytes, begin};
      } else {
        munmap(chunk, bytes);
      }
    }
  }
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
