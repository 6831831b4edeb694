// Random operations against a shadow model: which blocks live, how long they are, what they hold.
#include "cases.h"

enum { slots = 6000 };
static struct Slot {
  unsigned char* block;
  size_t bytes;
  uint32_t seed;
} slot[slots];

static size_t pick_size(void) {
  uint32_t kind = random_bits() % 1000;
  if (kind < 600) return random_between(0, 128);
  if (kind < 850) return random_between(0, 1100);
  if (kind < 985) return random_between(1000, 6000);
  if (kind < 999) return random_between(4000, 70000);
  return random_between(60000, 400000);
}

// A long block is told by its ends and some places between, or a run would only write patterns.
enum { whole_bytes = 256 };
static void mark(struct Slot* at) {
  if (at->bytes <= whole_bytes) {
    fill(at->block, at->bytes, at->seed);
    return;
  }
  fill(at->block, 64, at->seed);
  for (size_t place = 64; place + 64 < at->bytes; place += 1021)
    at->block[place] = (unsigned char)at->seed;
  fill(at->block + at->bytes - 64, 64, at->seed);
}
static int holds(const struct Slot* at, size_t bytes) {
  if (at->bytes <= whole_bytes) return intact(at->block, bytes, at->seed);
  if (!intact(at->block, bytes < 64 ? bytes : 64, at->seed)) return 0;
  for (size_t place = 64; place + 64 < at->bytes && place < bytes; place += 1021) {
    if (at->block[place] != (unsigned char)at->seed) return 0;
  }
  return bytes < at->bytes || intact(at->block + at->bytes - 64, 64, at->seed);
}

__attribute__((used, export_name("case_model"))) void case_model(uint32_t seed,
                                                                 uint32_t operations);
void case_model(uint32_t seed, uint32_t operations) {
  random_state = seed;
  size_t live = 0, live_bytes = 0, peak = 0;
  // How many slots are in use swings, so that pages fill and empty.
  uint32_t range = slots;
  for (uint32_t done = 0; done < operations; done++) {
    if (done % 50000 == 0) range = (uint32_t)random_between(50, slots);
    uint32_t index = random_bits() % (random_bits() % 8 ? range : slots);
    struct Slot* at = &slot[index];
    uint32_t action = random_bits() % 16;
    if (at->block && !holds(at, at->bytes)) {
      check_failed(__FILE__, __LINE__, "block holds what was written: operation, slot", done,
                   index);
      return;
    }
    if (!at->block) {
      size_t bytes = pick_size();
      size_t alignment = DEFAULT_ALIGNMENT;
      unsigned char* block;
      if (action < 10) {
        block = malloc(bytes);
      } else if (action < 13) {
        block = calloc(1, bytes);
        if (block && !all_bytes_are(block, bytes, 0)) {
          check_failed(__FILE__, __LINE__, "calloc is zero: operation, bytes", done, (double)bytes);
          return;
        }
      } else if (action == 13) {
        block = realloc(NULL, bytes);
      } else {
        alignment = (size_t)1 << random_between(2, random_bits() % 20 ? 9 : 15);
        block = aligned_alloc(alignment, bytes);
      }
      REQUIRE(block);
      CHECK(is_aligned(block, alignment));
      at->block = block;
      at->bytes = bytes;
    } else if (action < 12) {
      live--;
      live_bytes -= at->bytes;
      free(at->block);
      at->block = NULL;
      continue;
    } else {
      size_t bytes = random_bits() % 4 ? pick_size() : at->bytes + random_between(0, 40);
      unsigned char* block = realloc(at->block, bytes);
      REQUIRE(block);
      CHECK(is_aligned(block, DEFAULT_ALIGNMENT));
      live--;
      live_bytes -= at->bytes;
      at->block = block;
      if (!holds(at, bytes < at->bytes ? bytes : at->bytes)) {
        check_failed(__FILE__, __LINE__, "realloc kept the contents: operation, slot", done, index);
        return;
      }
      at->bytes = bytes;
    }
    size_t usable = ashlar_usable_size(at->block);
    CHECK_THAT(usable, >=, at->bytes);
    // Every eighth block uses all that it has.
    if (random_bits() % 8 == 0) at->bytes = usable;
    at->seed = random_bits();
    mark(at);
    live++;
    live_bytes += at->bytes;
    if (live_bytes > peak) peak = live_bytes;
    if (done % 20000 == 0) {
      REQUIRE(ashlar_check() == 0);
      ashlar_stats_t stats;
      ashlar_stats(&stats);
      CHECK_THAT(stats.live_blocks, ==, live);
      CHECK_THAT(stats.live_bytes, >=, live_bytes);
      CHECK_THAT(stats.committed_bytes, >=, stats.used_peak_bytes);
      CHECK_THAT(stats.used_peak_bytes, >=, peak);
    }
  }
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  metric("used_per_peak_live", (double)stats.used_peak_bytes / (double)peak);
  metric("allocations", (double)stats.allocations);
  for (uint32_t index = 0; index < slots; index++) {
    if (!slot[index].block) continue;
    CHECK(holds(&slot[index], slot[index].bytes));
    free(slot[index].block);
  }
  CHECK(ashlar_check() == 0);
  ashlar_stats(&stats);
  CHECK_THAT(stats.live_blocks, ==, 0);
  CHECK_THAT(stats.allocations, ==, stats.frees);
}
