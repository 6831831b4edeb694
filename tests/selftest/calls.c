// What malloc and its kin promise of a single block.
#include "checks.h"

static const size_t alignment = _Alignof(max_align_t);

// Would catch: an archive of another version, or one built without the name of its profile.
verdict check_version(void) {
  EXPECT(starts_with(ashlar_version(), "ashlar " VERSION " "));
  EXPECT(same(profile(), "fast") || same(profile(), "small") || same(profile(), "bare"));
  return PASSED;
}

// Would catch: a first malloc that takes memory by the megabyte.
verdict check_first_malloc(void) {
  const size_t before = stats().committed_bytes;
  void* const block = ashlar_malloc(10);
  EXPECT(block != NULL);
  // Two pages of wasm; natively one step of growth.
  EXPECT(stats().committed_bytes - before <= (sizeof(void*) == 4 ? 128 : 256) * KIB);
  ashlar_free(block);
  return PASSED;
}

// Would catch: a size whose blocks stand at less than the alignment of every type.
verdict check_alignment(void) {
  for (size_t size = 0; size <= 2100; ++size) {
    blocks[size] = ashlar_malloc(size);
    EXPECT(blocks[size] != NULL && is_aligned(blocks[size], alignment));
  }
  free_blocks(2101);
  return PASSED;
}

// Would catch: two live blocks that share a byte of what usable_size says is the caller's.
verdict check_no_overlap(void) {
  for (size_t i = 0; i < 600; ++i) {
    blocks[i] = ashlar_malloc(i < 500 ? i * 5 : i * 150);
    EXPECT(blocks[i] != NULL);
    fill(blocks[i], ashlar_usable_size(blocks[i]), (uint32_t)i);
  }
  for (size_t i = 0; i < 600; ++i) {
    EXPECT(holds(blocks[i], ashlar_usable_size(blocks[i]), (uint32_t)i));
  }
  EXPECT(ashlar_check() == 0);
  free_blocks(600);
  return PASSED;
}

// Would catch: size 0 answered by NULL, or by one address for all.
verdict check_size_0(void) {
  blocks[0] = ashlar_malloc(0);
  blocks[1] = ashlar_malloc(0);
  blocks[2] = ashlar_calloc(0, 8);
  blocks[3] = ashlar_aligned_alloc(64, 0);
  blocks[4] = ashlar_realloc(NULL, 0);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT(blocks[i] != NULL);
    for (size_t j = 0; j < i; ++j) EXPECT(blocks[i] != blocks[j]);
  }
  const size_t live = stats().live_blocks;
  blocks[0] = ashlar_realloc(blocks[0], 0);
  EXPECT(blocks[0] != NULL && stats().live_blocks == live);
  free_blocks(5);
  EXPECT(stats().live_blocks == live - 5);
  return PASSED;
}

// Would catch: NULL taken for a foreign pointer, or counted.
verdict check_null(void) {
  const ashlar_stats_t before = stats();
  ashlar_free(NULL);
  EXPECT(ashlar_usable_size(NULL) == 0);
  EXPECT(stats().frees == before.frees);
  void* const block = ashlar_realloc(NULL, 100);
  EXPECT(block != NULL && ashlar_usable_size(block) >= 100);
  EXPECT(stats().allocations == before.allocations + 1);
  ashlar_free(block);
  return PASSED;
}

// Would catch: memory that the system gave taken for zero where it is not, or our own words left.
verdict check_calloc_fresh(void) {
  static const size_t sizes[] = {1, 24, 500, 1024, 1025, 5000, 70000, 1048576, 3000001};
  for (size_t i = 0; i < 9; ++i) {
    blocks[i] = ashlar_calloc(sizes[i], 1);
    EXPECT(blocks[i] != NULL && is_zero(blocks[i], sizes[i]));
  }
  free_blocks(9);
  return PASSED;
}

// Blocks of these sizes, used and freed; then the same number from calloc.
static verdict calloc_after_use(const size_t* sizes, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < 50; ++j) {
      void* const block = blocks[50 * i + j] = ashlar_malloc(sizes[i]);
      EXPECT(block != NULL);
      fill(block, ashlar_usable_size(block), (uint32_t)j);
    }
  }
  free_blocks(50 * count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < 50; ++j) {
      blocks[50 * i + j] = ashlar_calloc(1, sizes[i]);
      EXPECT(blocks[50 * i + j] != NULL && is_zero(blocks[50 * i + j], sizes[i]));
    }
  }
  free_blocks(50 * count);
  return PASSED;
}

// Would catch: a small block whose last user's bytes, or whose link and tag, are still in it.
verdict check_calloc_used_small(void) {
  static const size_t sizes[] = {1, 16, 17, 100, 256, 1000, 1024};
  return calloc_after_use(sizes, 7);
}

// Would catch: used memory taken for fresh, or too little of it cleared.
verdict check_calloc_used_large(void) {
  static const size_t sizes[] = {1025, 3000, 5001, 40000, 65536};
  return calloc_after_use(sizes, 5);
}

// Would catch: a product that wraps around and gets a small block.
verdict check_calloc_overflow(void) {
  static const size_t half = SIZE_MAX / 2 + 1;
  EXPECT(ashlar_calloc(half, 2) == NULL);
  EXPECT(ashlar_calloc(half / 2 + 1, 4) == NULL);
  EXPECT(ashlar_calloc(SIZE_MAX, SIZE_MAX) == NULL);
  EXPECT(ashlar_calloc(SIZE_MAX / 16 + 2, 16) == NULL);
  EXPECT(ashlar_check() == 0);
  return PASSED;
}

// Would catch: bytes lost where realloc moves a block, by copying too little or by copying late.
verdict check_realloc_grows(void) {
  uint8_t* block = ashlar_malloc(1);
  EXPECT(block != NULL);
  size_t held = 1;
  fill(block, held, 7);
  for (size_t size = 2; size < 400000; size += 1 + size / 5) {
    void* const guard = ashlar_malloc(size);
    block = ashlar_realloc(block, size);
    EXPECT(guard != NULL && block != NULL);
    EXPECT(holds(block, held, 7) && ashlar_usable_size(block) >= size);
    held = ashlar_usable_size(block);
    fill(block, held, 7);
    ashlar_free(guard);
  }
  ashlar_free(block);
  return PASSED;
}

// Would catch: a shrunk block that lost its beginning, or that is still as long as before.
verdict check_realloc_shrinks(void) {
  const size_t big = 400000;
  uint8_t* block = ashlar_malloc(big);
  EXPECT(block != NULL);
  fill(block, big, 8);
  const size_t live = stats().live_bytes;
  for (size_t size = big; size > 0; size -= 1 + size / 5) {
    block = ashlar_realloc(block, size);
    EXPECT(block != NULL && holds(block, size, 8));
    EXPECT(ashlar_usable_size(block) <= 2 * size + 64);
  }
  EXPECT(stats().live_bytes <= live - big + 1000);
  ashlar_free(block);
  return PASSED;
}

// Would catch: the free memory behind a block not used, so that it moves where it could stay.
verdict check_realloc_in_place(void) {
  uint8_t* const block = ashlar_malloc(400000);
  EXPECT(block != NULL);
  fill(block, 400000, 9);
  EXPECT(ashlar_realloc(block, 150000) == block);
  const size_t grows = stats().grow_count;
  EXPECT(ashlar_realloc(block, 390000) == block);
  EXPECT(ashlar_realloc(block, ashlar_usable_size(block)) == block);
  EXPECT(stats().grow_count == grows);
  EXPECT(holds(block, 150000, 9));
  ashlar_free(block);
  return PASSED;
}

// Would catch: the last block copied each time that memory grows, and its old place lost.
verdict check_realloc_at_end(void) {
  size_t size = more_than_free();
  uint8_t* const block = ashlar_malloc(size);
  EXPECT(block != NULL);
  fill(block, 4096, 10);
  const size_t before = stats().committed_bytes;
  for (int i = 0; i < 16; ++i) {
    size += 512 * KIB;
    EXPECT(ashlar_realloc(block, size) == block);
  }
  EXPECT(stats().committed_bytes - before <= (8 * MIB) * 5 / 4);
  EXPECT(holds(block, 4096, 10));
  ashlar_free(block);
  return PASSED;
}

// Would catch: an alignment that holds only by luck, and a block that is shorter for it.
verdict check_aligned(void) {
  static const size_t sizes[] = {0, 1, 24, 100, 1000, 5000, 70000};
  size_t count = 0;
  for (size_t to = 1; to <= 64 * KIB; to *= 2) {
    for (size_t i = 0; i < 7; ++i, ++count) {
      void* const block = blocks[count] = ashlar_aligned_alloc(to, sizes[i]);
      EXPECT(block != NULL && is_aligned(block, to) && is_aligned(block, alignment));
      EXPECT(ashlar_usable_size(block) >= sizes[i]);
      fill(block, ashlar_usable_size(block), (uint32_t)count);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    EXPECT(holds(blocks[i], ashlar_usable_size(blocks[i]), (uint32_t)i));
  }
  EXPECT(ashlar_check() == 0);
  free_blocks(count);
  return PASSED;
}

// Would catch: what lies before and behind an aligned block lost until it is freed.
verdict check_aligned_gives_back(void) {
  for (size_t i = 0; i < 30; ++i) {
    blocks[i] = ashlar_aligned_alloc(64 * KIB, 4000);
    EXPECT(blocks[i] != NULL);
  }
  const size_t grows = stats().grow_count;
  for (size_t i = 30; i < 59; ++i) {
    blocks[i] = ashlar_malloc(50000);
    EXPECT(blocks[i] != NULL);
  }
  EXPECT(stats().grow_count == grows);
  free_blocks(59);
  return PASSED;
}

// Would catch: an alignment that is no power of two rounded, or taken for another.
verdict check_bad_alignment(void) {
  static const size_t bad[] = {0, 3, 12, 24, 48, 100, 65535, SIZE_MAX};
  const size_t live = stats().live_blocks;
  for (size_t i = 0; i < 8; ++i) EXPECT(ashlar_aligned_alloc(bad[i], 64) == NULL);
  EXPECT(stats().live_blocks == live);
  return PASSED;
}

static verdict sizes_agree(size_t size) {
  void* const block = ashlar_malloc(size);
  EXPECT(block != NULL);
  const size_t good = ashlar_good_size(size);
  EXPECT(good >= size && ashlar_usable_size(block) >= good);
  EXPECT(ashlar_good_size(good) == good);
  EXPECT(ashlar_realloc(block, ashlar_usable_size(block)) == block);
  ashlar_free(block);
  return PASSED;
}

// Would catch: good_size that promises more than a block has, or a usable size that is not usable.
verdict check_sizes(void) {
  for (size_t size = 0; size <= 2100; ++size) TRY(sizes_agree(size));
  for (size_t power = 4096; power <= 4 * MIB; power *= 2) {
    for (size_t size = power - 40; size <= power + 8; ++size) TRY(sizes_agree(size));
  }
  EXPECT(ashlar_good_size(SIZE_MAX) == SIZE_MAX);
  return PASSED;
}
