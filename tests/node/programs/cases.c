#include "cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

// Straight to the descriptor: stdio's buffers would be lost in a trap.
static void emit(const char* format, ...) {
  char line[400];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof line - 1) length = sizeof line - 1;
  if (write(1, line, (size_t)length) < 0) abort();
}

static unsigned failure_count;

void check_failed(const char* file, int line, const char* condition, double left, double right) {
  const char* slash = strrchr(file, '/');
  // A broken heap fails every round of a loop: the first few say it.
  if (++failure_count > 10) return;
  if (left == 0 && right == 0) {
    emit("FAIL %s:%d: %s\n", slash ? slash + 1 : file, line, condition);
  } else {
    emit("FAIL %s:%d: %s (%.0f, %.0f)\n", slash ? slash + 1 : file, line, condition, left, right);
  }
}

void metric(const char* name, double value) { emit("%s=%.17g\n", name, value); }

uint64_t memory_bytes(void) { return (uint64_t)__builtin_wasm_memory_size(0) * PAGE_BYTES; }

uint64_t top_bytes(void) {
#ifdef __EMSCRIPTEN__
  return (uintptr_t)sbrk(0);
#else
  return memory_bytes();
#endif
}

int profile_is(const char* name) {
  const char* version = ashlar_version();
  size_t length = strlen(version), tail = strlen(name);
  return length > tail && strcmp(version + length - tail, name) == 0;
}

uint64_t random_state = 1;

uint32_t random_bits(void) {
  // splitmix64
  uint64_t bits = (random_state += 0x9e3779b97f4a7c15u);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((bits ^ (bits >> 31)) >> 16);
}

size_t random_between(size_t least, size_t most) {
  return least + random_bits() % (most - least + 1);
}

static uint32_t word_at(size_t index, uint32_t seed) {
  return (seed * 0x9e3779b9u) ^ ((uint32_t)index * 0x85ebca6bu) ^ 0x5bd1e995u;
}

void fill(void* block, size_t bytes, uint32_t seed) {
  unsigned char* byte = block;
  size_t index = 0;
  for (; index + 4 <= bytes; index += 4) {
    uint32_t word = word_at(index, seed);
    memcpy(byte + index, &word, 4);
  }
  // The rest of a word is its first bytes: what a shorter fill writes is the start of a longer one.
  uint32_t last = word_at(index, seed);
  memcpy(byte + index, &last, bytes - index);
}

int intact(const void* block, size_t bytes, uint32_t seed) {
  const unsigned char* byte = block;
  size_t index = 0;
  for (; index + 4 <= bytes; index += 4) {
    uint32_t word;
    memcpy(&word, byte + index, 4);
    if (word != word_at(index, seed)) return 0;
  }
  uint32_t last = word_at(index, seed);
  return memcmp(byte + index, &last, bytes - index) == 0;
}

int all_bytes_are(const void* block, size_t bytes, unsigned char value) {
  const unsigned char* byte = block;
  for (size_t index = 0; index < bytes; index++) {
    if (byte[index] != value) return 0;
  }
  return 1;
}

int is_aligned(const void* block, size_t alignment) { return (uintptr_t)block % alignment == 0; }
