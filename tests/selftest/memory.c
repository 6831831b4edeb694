// Where memory comes from, and that it is used again.
#include "checks.h"

// Would catch: a free block that the next malloc of its size does not find.
verdict check_reuse(void) {
  static const size_t sizes[] = {16, 100, 1000, 5000, 100000, 1048576};
  for (size_t i = 0; i < 6; ++i) {
    // The first trips may change where a class's blocks come from.
    for (int trip = 0; trip < 600; ++trip) ashlar_free(ashlar_malloc(sizes[i]));
    const ashlar_stats_t before = stats();
    for (int trip = 0; trip < 2000; ++trip) ashlar_free(ashlar_malloc(sizes[i]));
    const ashlar_stats_t after = stats();
    EXPECT(after.committed_bytes == before.committed_bytes);
    EXPECT(after.used_peak_bytes == before.used_peak_bytes);
  }
  return PASSED;
}

// 64 neighbours, freed in steps of `stride` (odd) blocks, are one free block again.
static verdict joins_after(size_t stride) {
  const size_t whole = 64 * 5008;
  ashlar_free(ashlar_malloc(whole));
  const size_t committed = stats().committed_bytes;
  for (size_t i = 0; i < 64; ++i) {
    blocks[i] = ashlar_malloc(5000);
    EXPECT(blocks[i] != NULL);
  }
  for (size_t i = 0, next = 0; i < 64; ++i, next = (next + stride) % 64) ashlar_free(blocks[next]);
  void* const block = ashlar_malloc(whole);
  EXPECT(block != NULL && stats().committed_bytes == committed);
  ashlar_free(block);
  return PASSED;
}

// Would catch: a freed block that does not join the free one before it.
verdict check_joins_before(void) { return joins_after(1); }

// Would catch: a freed block that does not join the free one behind it.
verdict check_joins_behind(void) { return joins_after(63); }

// Would catch: a freed block between two free ones that joins only one of them.
verdict check_joins_both(void) { return joins_after(21); }

// 2 MiB in blocks of one size; each holds the address of the one before.
static void* chain_of(size_t size) {
  void** last = NULL;
  for (size_t bytes = 0; bytes < 2 * MIB; bytes += size) {
    void** const block = ashlar_malloc(size);
    if (block == NULL) break;
    *block = last;
    last = block;
  }
  return last;
}

static void free_chain(void** last) {
  while (last != NULL) {
    void** const before = *last;
    ashlar_free(last);
    last = before;
  }
}

// Would catch: empty pages kept for their class while another class has memory grow.
verdict check_pages_given_back(void) {
  void** chain = chain_of(48);
  const size_t committed = stats().committed_bytes;
  free_chain(chain);
  // A page may waste 3 % of itself, and growth takes 1/16 at a time.
  const size_t more = 2 * MIB / 32 + committed / 16 + 64 * KIB;
  chain = chain_of(800);
  EXPECT(stats().committed_bytes <= committed + more);
  free_chain(chain);
  void* const block = ashlar_malloc(2 * MIB - 64 * KIB);
  EXPECT(block != NULL && stats().committed_bytes <= committed + more);
  ashlar_free(block);
  return PASSED;
}

// Would catch: memory that grows although empty pages, one of each class, lie in the way.
verdict check_empty_pages(void) {
  const size_t whole = 2 * MIB;
  ashlar_free(ashlar_malloc(whole));
  size_t count = 0;
  const size_t committed = stats().committed_bytes;
  for (size_t size = 16; size <= 512; size += 16) {
    for (size_t bytes = 0; bytes < 40 * KIB; bytes += size, ++count) {
      EXPECT(count < MANY && (blocks[count] = ashlar_malloc(size)) != NULL);
    }
  }
  free_blocks(count);
  void* const block = ashlar_malloc(whole);
  EXPECT(block != NULL && stats().committed_bytes == committed);
  ashlar_free(block);
  return PASSED;
}

// Would catch: a full page that is not found again when one of its blocks is freed.
verdict check_holes_used(void) {
  for (size_t i = 0; i < MANY; ++i) {
    blocks[i] = ashlar_malloc(64);
    EXPECT(blocks[i] != NULL);
  }
  const size_t committed = stats().committed_bytes;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < MANY; i += 3) ashlar_free(blocks[i]);
    for (size_t i = 0; i < MANY; i += 3) {
      blocks[i] = ashlar_malloc(64);
      EXPECT(blocks[i] != NULL);
    }
  }
  EXPECT(stats().committed_bytes <= committed + 64 * KIB);
  EXPECT(ashlar_check() == 0);
  free_blocks(MANY);
  return PASSED;
}

// Would catch: a small block from before its class had pages taken for one of a page, or the other
// way round.
verdict check_class_gets_pages(void) {
  const ashlar_stats_t before = stats();
  for (size_t i = 0; i < 2000; ++i) {
    blocks[i] = ashlar_malloc(40);
    EXPECT(blocks[i] != NULL);
    fill(blocks[i], 40, (uint32_t)i);
  }
  for (size_t i = 0; i < 2000; ++i) {
    const size_t other = i * 7 % 2000;
    EXPECT(holds(blocks[other], 40, (uint32_t)other));
    ashlar_free(blocks[other]);
  }
  EXPECT(stats().live_blocks == before.live_blocks && stats().live_bytes == before.live_bytes);
  EXPECT(ashlar_check() == 0);
  return PASSED;
}

// Would catch: an address looked up in another range of the page map (one is 4 MiB on wasm), or a
// page that lies in two ranges and is known in one.
verdict check_ranges(void) {
  enum { COUNT = 13000 };
  const size_t live = stats().live_blocks;
  for (size_t i = 0; i < COUNT; ++i) {
    uint32_t* const block = blocks[i] = ashlar_malloc(1000);
    EXPECT(block != NULL);
    block[0] = block[249] = word_for(11, i);
  }
  EXPECT(ashlar_check() == 0);
  for (size_t i = 0; i < COUNT; ++i) {
    const size_t other = i * 7919 % COUNT;
    const uint32_t* const block = blocks[other];
    EXPECT(block[0] == word_for(11, other) && block[249] == word_for(11, other));
    ashlar_free(blocks[other]);
  }
  EXPECT(stats().live_blocks == live);
  EXPECT(ashlar_check() == 0);
  return PASSED;
}

static void mark_large(uint8_t* block, size_t bytes, uint32_t mark) {
  for (size_t at = 0; at + 4096 <= bytes; at += 256 * KIB) fill(block + at, 16, mark);
  fill(block + bytes - 16, 16, mark);
}

static int is_marked(const uint8_t* block, size_t bytes, uint32_t mark) {
  for (size_t at = 0; at + 4096 <= bytes; at += 256 * KIB) {
    if (!holds(block + at, 16, mark)) return 0;
  }
  return holds(block + bytes - 16, 16, mark);
}

// Would catch: large blocks that overlap, move without need, or are not found again.
verdict check_large(void) {
  const size_t bytes = 16 * MIB;
  for (uint32_t i = 0; i < 3; ++i) {
    blocks[i] = ashlar_malloc(bytes);
    EXPECT(blocks[i] != NULL);
    mark_large(blocks[i], bytes, i);
  }
  for (uint32_t i = 0; i < 3; ++i) EXPECT(is_marked(blocks[i], bytes, i));
  const size_t grows = stats().grow_count;
  ashlar_free(blocks[1]);
  blocks[1] = ashlar_malloc(bytes);
  EXPECT(blocks[1] != NULL && ashlar_realloc(blocks[0], bytes / 2) == blocks[0]);
  EXPECT(ashlar_realloc(blocks[0], bytes) == blocks[0]);
  EXPECT(stats().grow_count == grows);
  EXPECT(is_marked(blocks[2], bytes, 2) && holds(blocks[0], 16, 0));
  free_blocks(3);
  return PASSED;
}

// Growth.

// Would catch: memory that grows by the least that will do, or by far more than the 1/16.
verdict check_growth(void) {
  const ashlar_stats_t before = stats();
  const size_t size = 64 * KIB - 16;
  for (size_t i = 0; i < 1024; ++i) {
    blocks[i] = ashlar_malloc(size);
    EXPECT(blocks[i] != NULL);
  }
  const ashlar_stats_t after = stats();
  EXPECT(after.grow_count - before.grow_count <= 96);
  EXPECT(after.committed_bytes <= before.committed_bytes + 64 * MIB / 16 * 17 + 1 * MIB);
  free_blocks(1024);
  return PASSED;
}

// Would catch: a divisor that is forgotten, or one that works upside down.
verdict check_set_growth(void) {
  void* const first = ashlar_malloc(8 * MIB);
  EXPECT(first != NULL);
  EXPECT(ashlar_set_growth(2) == 16);
  const size_t before = stats().committed_bytes;
  void* const second = ashlar_malloc(more_than_free());
  const size_t half = stats().committed_bytes;
  EXPECT(second != NULL && half - before >= before / 2 - 512 * KIB);
  EXPECT(ashlar_set_growth(0) == 2);
  const size_t size = more_than_free();
  void* const third = ashlar_malloc(size);
  EXPECT(third != NULL && stats().committed_bytes - half <= size + 512 * KIB);
  EXPECT(ashlar_set_growth(16) == 0);
  ashlar_free(first);
  ashlar_free(second);
  ashlar_free(third);
  return PASSED;
}

// Would catch: a reservation that is too small for what it was made for.
verdict check_reserve(void) {
  EXPECT(ashlar_reserve(stats().largest_free_bytes + 6 * MIB) == 0);
  const size_t grows = stats().grow_count;
  EXPECT(stats().largest_free_bytes >= 6 * MIB);
  for (size_t i = 0; i < 60; ++i) {
    blocks[i] = ashlar_malloc(100000);
    EXPECT(blocks[i] != NULL);
  }
  EXPECT(stats().grow_count == grows);
  free_blocks(60);
  EXPECT(ashlar_reserve(6 * MIB) == 0 && stats().grow_count == grows);
  return PASSED;
}

// Would catch: a size that wraps around when a header is added, and a refusal that changes
// anything.
verdict check_impossible_sizes(void) {
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096, SIZE_MAX - 256 * KIB,
                                 SIZE_MAX - 1 * MIB};
  uint8_t* const block = ashlar_malloc(3000);
  EXPECT(block != NULL);
  fill(block, 3000, 12);
  const ashlar_stats_t before = stats();
  for (size_t i = 0; i < 5; ++i) {
    EXPECT(ashlar_malloc(sizes[i]) == NULL);
    EXPECT(ashlar_calloc(1, sizes[i]) == NULL);
    EXPECT(ashlar_realloc(block, sizes[i]) == NULL);
    EXPECT(ashlar_aligned_alloc(64 * KIB, sizes[i]) == NULL);
    EXPECT(ashlar_reserve(sizes[i]) == -1);
  }
  const ashlar_stats_t after = stats();
  EXPECT(after.committed_bytes == before.committed_bytes);
  EXPECT(after.live_blocks == before.live_blocks && after.allocations == before.allocations);
  EXPECT(holds(block, 3000, 12) && ashlar_check() == 0);
  ashlar_free(block);
  return PASSED;
}
