// The table of checks, and what they are made of. See selftest.h and checks.h.
#include "checks.h"

// Texts.

int starts_with(const char* text, const char* start) {
  while (*start != 0 && *text == *start) ++text, ++start;
  return *start == 0;
}

int same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

const char* profile(void) { return ashlar_version() + sizeof "ashlar " VERSION; }

// What the target and the profile promise.

static const char* detail = "";
const char* selftest_detail(void) { return detail; }

int selftest_skips(int needs) {
#ifdef __wasm__
  const int on_wasm = 1;
#else
  const int on_wasm = 0;
#endif
  const char* missing = NULL;
  if ((needs & NEEDS_WASM) && !on_wasm) missing = "needs linear memory";
  if ((needs & NEEDS_PAGES) && same(profile(), "small")) missing = "small has no pages";
  if ((needs & NEEDS_CHECKS) && same(profile(), "bare")) missing = "bare catches no misuse";
  if (missing != NULL) detail = missing;
  return missing != NULL;
}

// Contents.

uint32_t word_for(uint32_t mark, size_t index) {
  return (mark + 1) * 0x9e3779b9u + (uint32_t)index * 0x85ebca6bu;
}

void fill(void* block, size_t bytes, uint32_t mark) {
  uint32_t* const words = block;
  uint8_t* const tail = block;
  for (size_t i = 0; i < bytes / 4; ++i) words[i] = word_for(mark, i);
  for (size_t i = bytes & ~(size_t)3; i < bytes; ++i) {
    tail[i] = (uint8_t)(word_for(mark, i / 4) >> (8 * (i % 4)));
  }
}

int holds(const void* block, size_t bytes, uint32_t mark) {
  const uint32_t* const words = block;
  const uint8_t* const tail = block;
  for (size_t i = 0; i < bytes / 4; ++i) {
    if (words[i] != word_for(mark, i)) return 0;
  }
  for (size_t i = bytes & ~(size_t)3; i < bytes; ++i) {
    if (tail[i] != (uint8_t)(word_for(mark, i / 4) >> (8 * (i % 4)))) return 0;
  }
  return 1;
}

int is_zero(const void* block, size_t bytes) {
  const uint8_t* const at = block;
  for (size_t i = 0; i < bytes; ++i) {
    if (at[i] != 0) return 0;
  }
  return 1;
}

int is_aligned(const void* block, size_t to) { return (uintptr_t)block % to == 0; }

// Statistics.

ashlar_stats_t stats(void) {
  ashlar_stats_t all;
  ashlar_stats(&all);
  return all;
}

size_t more_than_free(void) { return stats().largest_free_bytes + 64 * KIB; }

// Random numbers.

enum { DEFAULT_SEED = 0x5eed };
static uint32_t seed = DEFAULT_SEED;
static uint32_t random_state;

void selftest_set_seed(uint32_t new_seed) { seed = new_seed == 0 ? DEFAULT_SEED : new_seed; }
uint32_t selftest_seed(void) { return seed; }

void random_start(void) { random_state = seed; }

uint32_t random_below(uint32_t limit) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state % limit;
}

// Many blocks.

void* blocks[MANY];

void free_blocks(size_t count) {
  for (size_t i = 0; i < count; ++i) ashlar_free(blocks[i]);
}

struct check {
  int code;
  int needs;
  const char* name;
  verdict (*run)(void);
};

#define ROW(code, needs, name, run) {code, needs, name, run},
static const struct check checks[] = {CHECKS(ROW)};
#undef ROW

int selftest_count(void) { return (int)(sizeof checks / sizeof *checks); }
const char* selftest_name(int index) { return checks[index].name; }
int selftest_code(int index) { return checks[index].code; }

int selftest_run(int index) {
  const struct check* const check = &checks[index];
  if (selftest_skips(check->needs)) return SELFTEST_SKIPPED;
  // For a trap in the middle of the check: not the last one's words.
  detail = "did not return";
  verdict const found = check->run();
  detail = found == PASSED ? "" : found;
  return found == PASSED ? 0 : check->code;
}

int selftest_all(void) {
  for (int i = 0; i < selftest_count(); ++i) {
    const int code = selftest_run(i);
    if (code > 0) return code;
  }
  return 0;
}
