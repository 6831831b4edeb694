// Words that every file of the core uses. The only place that knows a compiler.
#pragma once

#include <stddef.h>
#include <stdint.h>

static_assert(sizeof(void*) == sizeof(size_t) && (sizeof(size_t) == 4 || sizeof(size_t) == 8),
              "ashlar: pointers must be flat and of 32 or 64 bits");

// fast_path: what a usual malloc or free runs, inlined into it. slow_path: everything else that
// is reached from there, kept out of it and called in tail position.
#define fast_path inline __attribute__((always_inline))
#define slow_path __attribute__((noinline))

// A constant that no linker may drop.
#if defined(__has_attribute) && __has_attribute(retain)
#define keep_in_binary extern __attribute__((used, retain))
#else
#define keep_in_binary extern __attribute__((used))
#endif

namespace ashlar {

// The address of a byte. Blocks are named by the address of their first byte (their payload).
using Address = uintptr_t;

constexpr size_t word_bytes = sizeof(size_t);
constexpr unsigned word_bits = unsigned(8 * word_bytes);

// Sums that may pass the end of the number range on purpose. Elsewhere that is a fault, and the
// sanitizer stops on it.
fast_path constexpr size_t wrapping_add(size_t a, size_t b) {
  size_t sum = 0;
  (void)__builtin_add_overflow(a, b, &sum);
  return sum;
}

fast_path constexpr size_t wrapping_subtract(size_t a, size_t b) {
  size_t difference = 0;
  (void)__builtin_sub_overflow(a, b, &difference);
  return difference;
}

fast_path constexpr size_t wrapping_multiply(size_t a, size_t b) {
  size_t product = 0;
  (void)__builtin_mul_overflow(a, b, &product);
  return product;
}

fast_path constexpr uint32_t wrapping_add32(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  (void)__builtin_add_overflow(a, b, &sum);
  return sum;
}

fast_path constexpr uint32_t wrapping_subtract32(uint32_t a, uint32_t b) {
  uint32_t difference = 0;
  (void)__builtin_sub_overflow(a, b, &difference);
  return difference;
}

// `alignment` is a power of two.
fast_path constexpr size_t align_down(size_t n, size_t alignment) { return n & ~(alignment - 1); }
fast_path constexpr size_t align_up(size_t n, size_t alignment) {
  return align_down(n + (alignment - 1), alignment);
}
fast_path constexpr bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

fast_path constexpr size_t min(size_t a, size_t b) { return a < b ? a : b; }
fast_path constexpr size_t max(size_t a, size_t b) { return a > b ? a : b; }

// Index of the lowest and of the highest bit that is set; n != 0.
fast_path constexpr unsigned lowest_bit(size_t n) {
  return unsigned(word_bytes == 8 ? __builtin_ctzll(n) : __builtin_ctz(unsigned(n)));
}
fast_path constexpr unsigned highest_bit(size_t n) {
  return unsigned(word_bytes == 8 ? 63 - __builtin_clzll(n) : 31 - __builtin_clz(unsigned(n)));
}

// Numbers up to 16 one by one, then eight steps for each doubling: the index of the step.
fast_path constexpr unsigned eighths(size_t n) {
  const unsigned doublings = highest_bit(n | 8) - 3;
  return doublings * 8 + unsigned(n >> doublings);
}

}  // namespace ashlar
