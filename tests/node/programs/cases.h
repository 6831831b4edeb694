// What every program of tests/node shares. A case is an exported function without output of its
// own: it checks, and prints one line per failure and per measured number. The host
// (../support.mjs) starts a fresh instance for each case, calls it, and reads those lines.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ashlar.h"

#ifdef __cplusplus
#define CASE(name) \
  extern "C" __attribute__((used, export_name("case_" #name))) void case_##name(void)
extern "C" {
#else
#define CASE(name)                                                          \
  __attribute__((used, export_name("case_" #name))) void case_##name(void); \
  void case_##name(void)
#endif

// CHECK goes on after a failure, REQUIRE ends the case.
#define CHECK(condition) \
  ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition, 0, 0))
#define REQUIRE(condition)                                \
  do {                                                    \
    if (!(condition)) {                                   \
      check_failed(__FILE__, __LINE__, #condition, 0, 0); \
      return;                                             \
    }                                                     \
  } while (0)
// Compares two numbers and shows both when it fails.
#define CHECK_THAT(left, relation, right)                                                     \
  (((left)relation(right)) ? (void)0                                                          \
                           : check_failed(__FILE__, __LINE__, #left " " #relation " " #right, \
                                          (double)(left), (double)(right)))

void check_failed(const char* file, int line, const char* condition, double left, double right);
void metric(const char* name, double value);

// Where memory ends that was taken so far: the break on Emscripten, whose glue grows memory further
// than that; the end of linear memory elsewhere.
uint64_t top_bytes(void);
uint64_t memory_bytes(void);
int profile_is(const char* name);

// Deterministic numbers; each case seeds its own.
extern uint64_t random_state;
uint32_t random_bits(void);
size_t random_between(size_t least, size_t most);

// A pattern that tells blocks, and places in a block, apart.
void fill(void* block, size_t bytes, uint32_t seed);
int intact(const void* block, size_t bytes, uint32_t seed);
int all_bytes_are(const void* block, size_t bytes, unsigned char value);

int is_aligned(const void* block, size_t alignment);
#ifdef __cplusplus
#define DEFAULT_ALIGNMENT alignof(max_align_t)
#else
#define DEFAULT_ALIGNMENT _Alignof(max_align_t)
#endif
#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define PAGE_BYTES ((size_t)65536)

#ifdef __cplusplus
}
#endif
