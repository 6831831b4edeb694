/* The shapes of ./dev bench micro and instructions: what allocators are usually measured with, and
 * each shape asks for one thing. The same file is linked for WASI and for Emscripten and compiled
 * natively; lib/heap.h says what happens to a block. Sizes and order come from a seeded generator,
 * so every allocator sees the same calls. */
#include "lib/heap.h"

enum { max_blocks = 65536, bulk_blocks = 1024 };

static struct block blocks[max_blocks];
static uint16_t order[bulk_blocks];
static uint32_t random_state;

static uint32_t below(uint32_t limit) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return (uint32_t)((uint64_t)random_state * limit >> 32);
}

static uint32_t between(uint32_t least, uint32_t most) { return least + below(most - least + 1); }

static void give_all(uint32_t count) {
  uint32_t i;
  for (i = 0; i < count; ++i) give(&blocks[i]);
}

/* One block out and in again. */

static void pair_round(void) {
  uint32_t i;
  for (i = 0; i < 25000; ++i) {
    take(&blocks[0], 32);
    give(&blocks[0]);
  }
}

/* A steady number of blocks, of which a random one is replaced in each step. */

static void fill(uint32_t count, uint32_t least, uint32_t most) {
  uint32_t i;
  for (i = 0; i < count; ++i) take(&blocks[i], between(least, most));
}

static void replace(uint32_t steps, uint32_t count, uint32_t least, uint32_t most) {
  uint32_t i;
  for (i = 0; i < steps; ++i) {
    struct block* const block = &blocks[below(count)];
    give(block);
    take(block, between(least, most));
  }
}

static void churn_256_start(void) { fill(256, 16, 1024); }
static void churn_256_round(void) { replace(25000, 256, 16, 1024); }
static void churn_10000_start(void) { fill(10000, 16, 1024); }
static void churn_10000_round(void) { replace(25000, 10000, 16, 1024); }
static void live_65536_start(void) { fill(65536, 16, 128); }
static void live_65536_round(void) { replace(25000, 65536, 16, 128); }

static void random_start(void) { fill(1000, 1, 10000); }
static void random_round(void) {
  uint32_t i;
  for (i = 0; i < 25000; ++i) {
    struct block* const block = &blocks[below(1000)];
    if (block->bytes == NULL) {
      take(block, between(1, 10000));
    } else if (below(2) == 0) {
      resize(block, between(1, 10000));
    } else {
      give(block);
    }
  }
}

/* 1024 blocks of 64 bytes out, then in. */

static void bulk(uint32_t times) {
  uint32_t i;
  for (; times > 0; --times) {
    for (i = 0; i < bulk_blocks; ++i) take(&blocks[i], 64);
    for (i = 0; i < bulk_blocks; ++i) give(&blocks[order[i]]);
  }
}

static void bulk_round(void) { bulk(20); }

static void in_order_start(void) {
  uint32_t i;
  for (i = 0; i < bulk_blocks; ++i) order[i] = (uint16_t)i;
}

static void reversed_start(void) {
  uint32_t i;
  for (i = 0; i < bulk_blocks; ++i) order[i] = (uint16_t)(bulk_blocks - 1 - i);
}

static void shuffled_start(void) {
  uint32_t i;
  in_order_start();
  for (i = bulk_blocks; i > 1; --i) {
    uint32_t const other = below(i);
    uint16_t const kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
}

/* One block that doubles from 16 bytes to 1 MiB. */

static void realloc_chain_round(void) {
  uint32_t i, size;
  for (i = 0; i < 50; ++i) {
    for (size = 16; size <= 1u << 20; size *= 2) resize(&blocks[0], size);
    give(&blocks[0]);
  }
}

/* 64 strings that grow in turns by a few bytes each, and start anew beyond 4 KiB. */

static void strings_round(void) {
  uint32_t i;
  for (i = 0; i < 25000; ++i) {
    struct block* const block = &blocks[i % 64];
    uint32_t const size = block->size + between(1, 64);
    if (size > 4096) {
      give(block);
    } else {
      resize(block, size);
    }
  }
}

static void large_round(void) {
  uint32_t i;
  for (i = 0; i < 2000; ++i) {
    struct block* const block = &blocks[below(4)];
    /* From 40 KB to 16 MiB, as many small as large ones: by factors. */
    uint32_t const size = 40000u << below(8);
    give(block);
    take(block, size + below(size));
  }
}

/* calloc of 16 B to 16 KiB: memory that nobody used before, and memory that was. */

static void calloc_fresh_round(void) {
  uint32_t i;
  for (i = 0; i < 4000; ++i) take_zeroed(&blocks[i], between(16, 16384));
}

static void calloc_used_start(void) {
  fill(256, 16, 16384);
  give_all(256);
}
static void calloc_used_round(void) {
  uint32_t i;
  for (i = 0; i < 10000; ++i) {
    struct block* const block = &blocks[below(256)];
    give(block);
    take_zeroed(block, between(16, 16384));
  }
}

static void aligned_round(void) {
  uint32_t i;
  for (i = 0; i < 5000; ++i) {
    struct block* const block = &blocks[below(256)];
    give(block);
    take_aligned(block, 64u << below(11), between(16, 1024));
  }
}

/* 64 MiB of memory that stays: how often memory is grown for it shows too. */

static void fill_round(void) { fill(65536, 1024, 1024); }

/* All that a tiny program does: its heap stays under 64 KiB. */

static void tiny_round(void) {
  uint32_t i;
  for (i = 0; i < 600; ++i) {
    struct block* const block = &blocks[below(200)];
    if (block->bytes == NULL || below(8) == 0) {
      resize(block, between(8, 400));
    } else {
      give(block);
    }
  }
  give_all(200);
}

static void nothing(void) {}

struct shape {
  const char* name;
  void (*start)(void);
  void (*round)(void);
  uint32_t is_fresh;
};

static struct shape const shapes[] = {
    {"pair", nothing, pair_round, 0},
    {"churn-256", churn_256_start, churn_256_round, 0},
    {"churn-10000", churn_10000_start, churn_10000_round, 0},
    {"live-65536", live_65536_start, live_65536_round, 0},
    {"random", random_start, random_round, 0},
    {"bulk-in-order", in_order_start, bulk_round, 0},
    {"bulk-reversed", reversed_start, bulk_round, 0},
    {"bulk-shuffled", shuffled_start, bulk_round, 0},
    {"realloc-chain", nothing, realloc_chain_round, 0},
    {"strings", nothing, strings_round, 0},
    {"large", nothing, large_round, 0},
    {"calloc-fresh", nothing, calloc_fresh_round, 1},
    {"calloc-used", calloc_used_start, calloc_used_round, 0},
    {"aligned", nothing, aligned_round, 0},
    {"fill-64-mib", nothing, fill_round, 1},
    {"tiny", nothing, tiny_round, 1},
};
enum { shape_count = sizeof shapes / sizeof shapes[0] };

WORK_EXPORT(shape_name) const char* shape_name(uint32_t index) {
  return index < shape_count ? shapes[index].name : NULL;
}

WORK_EXPORT(shape_is_fresh) uint32_t shape_is_fresh(uint32_t index) {
  return shapes[index].is_fresh;
}

WORK_EXPORT(shape_start) void shape_start(uint32_t index, uint32_t seed) {
  random_state = seed * 2654435761u | 1;
  shapes[index].start();
}

WORK_EXPORT(shape_round) void shape_round(uint32_t index) { shapes[index].round(); }
