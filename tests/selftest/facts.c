// Statistics, random operations, validation, and what only linear memory shows.
#include "checks.h"

// Facts.

// Would catch: a block counted twice, late or not at all; usable bytes of another size.
verdict check_stats(void) {
  enum { COUNT = 2400 };
  static const size_t sizes[] = {1, 16, 40, 500, 1024, 1025, 6000, 20000};
  const ashlar_stats_t before = stats();
  size_t bytes = 0;
  for (size_t i = 0; i < COUNT; ++i) {
    blocks[i] = ashlar_malloc(sizes[i % 8]);
    EXPECT(blocks[i] != NULL);
    bytes += ashlar_usable_size(blocks[i]);
  }
  const ashlar_stats_t between = stats();
  EXPECT(between.allocations == before.allocations + COUNT && between.frees == before.frees);
  EXPECT(between.live_blocks == before.live_blocks + COUNT);
  EXPECT(between.live_bytes == before.live_bytes + bytes);
  // A third of each size, so that no page is empty: what pages count themselves is asked for.
  for (size_t i = 0; i < COUNT; i += 3) ashlar_free(blocks[i]);
  EXPECT(stats().frees == before.frees + COUNT / 3);
  EXPECT(stats().live_blocks == before.live_blocks + COUNT / 3 * 2);
  for (size_t i = 0; i < COUNT; ++i) {
    if (i % 3 != 0) ashlar_free(blocks[i]);
  }
  const ashlar_stats_t after = stats();
  EXPECT(after.allocations == before.allocations + COUNT && after.frees == before.frees + COUNT);
  EXPECT(after.live_blocks == before.live_blocks && after.live_bytes == before.live_bytes);
  return PASSED;
}

// Would catch: free memory that is counted as something else, or more of it than there is.
verdict check_free_stats(void) {
  const size_t size = more_than_free();
  void* const block = ashlar_malloc(size);
  EXPECT(block != NULL);
  const ashlar_stats_t used = stats();
  EXPECT(used.live_bytes + used.free_bytes <= used.committed_bytes);
  EXPECT(used.largest_free_bytes <= used.free_bytes);
  EXPECT(used.free_bytes <= used.free_blocks * used.largest_free_bytes);
  ashlar_free(block);
  const ashlar_stats_t after = stats();
  EXPECT(after.free_bytes - used.free_bytes >= size);
  EXPECT(after.free_bytes - used.free_bytes <= size + 64);
  EXPECT(after.largest_free_bytes >= size && after.committed_bytes == used.committed_bytes);
  return PASSED;
}

// Would catch: a peak that falls with a free, or that rises when memory is used again.
verdict check_used_peak(void) {
  const size_t before = ashlar_used_peak();
  const size_t size = more_than_free();
  void* const block = ashlar_malloc(size);
  EXPECT(block != NULL);
  const size_t peak = ashlar_used_peak();
  EXPECT(peak > before && peak >= size && peak <= stats().committed_bytes);
  EXPECT(peak == stats().used_peak_bytes);
  ashlar_free(block);
  EXPECT(ashlar_used_peak() == peak);
  ashlar_free(ashlar_malloc(size / 2));
  EXPECT(ashlar_used_peak() == peak);
  return PASSED;
}

// Random operations, each with the contents of the block at hand verified.

enum { SLOTS = 400 };
static struct slot {
  uint8_t* block;
  uint32_t mark;
} slots[SLOTS];

static size_t random_size(uint32_t largest_power) {
  return random_below((uint32_t)1 << (4 + random_below(largest_power - 3)));
}

static verdict allocate_in(struct slot* slot, size_t size) {
  const uint32_t how = random_below(8);
  const size_t to = (size_t)1 << random_below(13);
  slot->block = how == 0   ? ashlar_calloc(1, size)
                : how == 1 ? ashlar_aligned_alloc(to, size)
                           : ashlar_malloc(size);
  EXPECT(slot->block != NULL && is_aligned(slot->block, _Alignof(max_align_t)));
  EXPECT(how != 0 || is_zero(slot->block, size));
  EXPECT(how != 1 || is_aligned(slot->block, to));
  EXPECT(ashlar_usable_size(slot->block) >= size);
  return PASSED;
}

static verdict change(struct slot* slot, size_t size) {
  const size_t usable = ashlar_usable_size(slot->block);
  EXPECT(holds(slot->block, usable, slot->mark));
  if (random_below(3) != 0) {
    ashlar_free(slot->block);
    slot->block = NULL;
    return PASSED;
  }
  slot->block = ashlar_realloc(slot->block, size);
  EXPECT(slot->block != NULL && ashlar_usable_size(slot->block) >= size);
  EXPECT(holds(slot->block, size < usable ? size : usable, slot->mark));
  return PASSED;
}

static verdict random_operations(int count, uint32_t largest_power) {
  random_start();
  const size_t live = stats().live_blocks;
  for (int i = 1; i <= count; ++i) {
    struct slot* const slot = &slots[random_below(SLOTS)];
    const size_t size = random_size(largest_power);
    TRY(slot->block == NULL ? allocate_in(slot, size) : change(slot, size));
    if (slot->block != NULL) {
      slot->mark = (uint32_t)i;
      fill(slot->block, ashlar_usable_size(slot->block), slot->mark);
    }
    if (i % 2000 == 0) EXPECT(ashlar_check() == 0);
  }
  for (size_t i = 0; i < SLOTS; ++i) {
    struct slot* const slot = &slots[i];
    if (slot->block == NULL) continue;
    EXPECT(holds(slot->block, ashlar_usable_size(slot->block), slot->mark));
    ashlar_free(slot->block);
    slot->block = NULL;
  }
  EXPECT(stats().live_blocks == live);
  EXPECT(ashlar_check() == 0);
  return PASSED;
}

// Would catch: what only a certain order of small mallocs and frees shows.
verdict check_random_small(void) { return random_operations(20000, 10); }

// Would catch: the same of small and large blocks among each other.
verdict check_random_mixed(void) { return random_operations(20000, 15); }

// Would catch: a message without a fault, in a heap that was used as it should be.
verdict check_no_message(void) {
  void* const block = ashlar_malloc(100);
  EXPECT(block != NULL && ashlar_check() == 0);
  EXPECT(same(ashlar_last_message(), ""));
  ashlar_free(block);
  return PASSED;
}

// Would catch: validation that looks at nothing. The word behind a block is the next one's header.
verdict check_sees_damage(void) {
  uint8_t* const block = ashlar_malloc(5000);
  void* const guard = ashlar_malloc(5000);
  EXPECT(block != NULL && guard != NULL);
  size_t* const behind = (size_t*)(void*)(block + ashlar_usable_size(block));
  const size_t header = *behind;
  *behind = (size_t)0x5a5a5a5a5a5a5a5au;
  EXPECT(ashlar_check() == 1);
  const char* const line =
      same(profile(), "fast") ? "ashlar: corrupted header at 0x" : "ashlar: 5 0x";
  EXPECT(starts_with(ashlar_last_message(), line));
  *behind = header;
  EXPECT(ashlar_check() == 0);
  ashlar_free(block);
  ashlar_free(guard);
  return PASSED;
}

// Linear memory: only here can others grow it, and only here does it end.

#ifdef __wasm__

extern unsigned char __heap_end;

static size_t memory_bytes(void) { return __builtin_wasm_memory_size(0) * 64 * KIB; }

// Would catch: memory used that nobody gave to us: statics, the stack, the linker's heap, which is
// another malloc's in a program that links the core alone.
verdict check_own_memory_only(void) {
  for (size_t i = 0; i < 200; ++i) {
    const uintptr_t block = (uintptr_t)(blocks[i] = ashlar_malloc(i * 100));
    EXPECT(block >= (uintptr_t)&__heap_end);
    EXPECT(block + ashlar_usable_size(blocks[i]) <= memory_bytes());
  }
  free_blocks(200);
  return PASSED;
}

// Until the next block of 30000 bytes needs more memory.
static size_t take_what_is_free(void) {
  size_t count = 0;
  for (size_t bytes; count < MANY && (bytes = stats().largest_free_bytes) > 30000; ++count) {
    blocks[count] = ashlar_malloc(bytes - 100);
  }
  return count;
}

// Would catch: memory that somebody else grew between two of our calls taken for ours.
verdict check_stranger(void) {
  void* theirs[4];
  const size_t taken = take_what_is_free();
  size_t count = taken;
  for (uint32_t i = 0; i < 4; ++i) {
    theirs[i] = (void*)(__builtin_wasm_memory_grow(0, 1) * 64 * KIB);
    fill(theirs[i], 64 * KIB, 100 + i);
    for (const size_t grows = stats().grow_count; stats().grow_count < grows + 2; ++count) {
      EXPECT(count < MANY);
      blocks[count] = ashlar_malloc(30000);
      EXPECT(blocks[count] != NULL);
      fill(blocks[count], ashlar_usable_size(blocks[count]), (uint32_t)count);
    }
  }
  for (uint32_t i = 0; i < 4; ++i) EXPECT(holds(theirs[i], 64 * KIB, 100 + i));
  for (size_t i = taken; i < count; ++i) {
    EXPECT(holds(blocks[i], ashlar_usable_size(blocks[i]), (uint32_t)i));
  }
  EXPECT(ashlar_check() == 0);
  free_blocks(count);
  EXPECT(ashlar_check() == 0);
  return PASSED;
}

// Would catch: the refusal of the system taken for memory, or a heap that is of no use after it.
verdict check_memory_ends(void) {
  size_t count = 0;
  const size_t live = stats().live_blocks;
  while (count < MANY && (blocks[count] = ashlar_malloc(1 * MIB)) != NULL) ++count;
  EXPECT(count > 0 && count < MANY && stats().live_blocks == live + count);
  EXPECT(ashlar_check() == 0);
  free_blocks(count);
  for (size_t i = 0; i < count; ++i) EXPECT((blocks[i] = ashlar_malloc(1 * MIB)) != NULL);
  free_blocks(count);
  EXPECT(stats().live_blocks == live && ashlar_check() == 0);
  return PASSED;
}

#else

// Not called: selftest_run skips what needs wasm.
verdict check_own_memory_only(void) { return "not natively"; }
verdict check_stranger(void) { return "not natively"; }
verdict check_memory_ends(void) { return "not natively"; }

#endif
