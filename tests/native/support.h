// What the suites share: virgin heaps in child processes, deaths, random numbers, patterns.
#pragma once

#include <gtest/gtest.h>
#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <string>

namespace test {

// A test whose body runs in a child process. The parent never calls the allocator, so that each
// body finds a virgin heap; the body's failures become the parent's.
#define HEAP_TEST(suite, name)                                \
  static void suite##_##name();                               \
  TEST(suite, name) { ::test::run_in_child(suite##_##name); } \
  static void suite##_##name()

void run_in_child(const std::function<void()>& body);

// How a child ended and what it wrote to standard error. At SIGABRT the child also writes
// "last message: " and ashlar_last_message().
struct Ending {
  int signal = 0;
  int exit_code = 0;
  std::string error_output;
};
Ending end_of(const std::function<void()>& body);

// xorshift64: no multiplication, which -fsanitize=unsigned-integer-overflow would report.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed != 0 ? seed : 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }
  size_t between(size_t low, size_t high) { return low + below(high - low + 1); }
  bool one_in(size_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

// ASHLAR_SEED when it is set, otherwise a new one each run. Printed, so that a failure can be
// rerun.
uint64_t printed_seed();

// Contents that belong to one block alone: they tell a swap, a shift and an overlap.
void fill(void* block, size_t size, uint64_t tag);
bool filled(const void* block, size_t size, uint64_t tag);
bool all_zero(const void* block, size_t size);

// A number that the compiler can't see through: keeps its warnings about sizes away.
size_t opaque(size_t value);
void* opaque(void* pointer);

inline uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
inline void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }
inline bool is_aligned(const void* pointer, size_t alignment) {
  return address(pointer) % alignment == 0;
}

}  // namespace test
