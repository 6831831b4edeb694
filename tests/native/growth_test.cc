// How much memory the allocator takes: rows of section A of the field report, and the promises of
// ashlar_reserve and ashlar_set_growth. Runs on every OS; what only linear memory shows stands in
// strangers_test.cc and oom_test.cc.
#include <ashlar.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "names.h"
#include "profile.h"
#include "support.h"

namespace {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;

ashlar_stats_t stats() {
  ashlar_stats_t now;
  ashlar_stats(&now);
  return now;
}

// Row 1. Catches survivors of each round that pin the memory around them for good.
HEAP_TEST(Growth, row_1_rounds_with_few_survivors) {
  test::Random random(1);
  std::vector<void*> survivors(400, nullptr);
  size_t next_survivor = 0, peak_live = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < 1500; ++i) {
      size_t const size =
          random.one_in(20) ? random.between(4 * KiB, 64 * KiB) : random.between(8, 1500);
      blocks.push_back(heap::malloc(size));
      ASSERT_NE(blocks.back(), nullptr);
    }
    peak_live = std::max(peak_live, stats().live_bytes);
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i % 300 != 0) {
        heap::free(blocks[i]);
        continue;
      }
      heap::free(survivors[next_survivor]);
      survivors[next_survivor] = blocks[i];
      next_survivor = (next_survivor + 1) % survivors.size();
    }
  }
  EXPECT_LT(stats().committed_bytes, peak_live * 2 + MiB) << "peak live " << peak_live;
}

// Row 2. Catches a doubling buffer whose freed predecessors are not joined and used again.
HEAP_TEST(Growth, row_2_doubling_buffer_with_pins) {
  constexpr size_t last = 32 * MiB;
  size_t pinned = 0;
  char* buffer = static_cast<char*>(heap::malloc(KiB));
  for (size_t capacity = 2 * KiB; capacity <= last; capacity *= 2) {
    for (int i = 0; i < 50; ++i) pinned += heap::usable_size(heap::malloc(48));
    char* const larger = static_cast<char*>(heap::malloc(capacity));
    ASSERT_NE(larger, nullptr);
    memcpy(larger, buffer, capacity / 2);
    heap::free(buffer);
    buffer = larger;
  }
  EXPECT_LT(stats().committed_bytes, 3 * last + pinned);
}

// Row 6. Catches taking new memory as another heap instead of extending the last: ten times as
// much.
HEAP_TEST(Growth, row_6_ratchet_buffer) {
  size_t size = 64 * KiB;
  char* buffer = static_cast<char*>(heap::malloc(size));
  for (int step = 0; step < 150; ++step) {
    char* const larger = static_cast<char*>(heap::malloc(size + 64 * KiB));
    ASSERT_NE(larger, nullptr);
    memcpy(larger, buffer, size);
    heap::free(buffer);
    buffer = larger;
    size += 64 * KiB;
  }
  EXPECT_LT(stats().committed_bytes, size * 33 / 10);
}

// Row 11. Catches a large block's memory that is not used for the next one.
HEAP_TEST(Growth, row_11_large_block_again_and_again) {
  constexpr size_t size = 100 * 1000 * 1000;
  size_t after_first = 0;
  for (int i = 0; i < 1000; ++i) {
    char* const block = static_cast<char*>(heap::malloc(size));
    ASSERT_NE(block, nullptr);
    for (size_t at = 0; at < size; at += 8 * MiB) block[at] = 1;
    block[size - 1] = 1;
    heap::free(block);
    if (i == 0) after_first = stats().committed_bytes;
  }
  EXPECT_EQ(stats().committed_bytes, after_first);
  EXPECT_LT(after_first, size + size / 8);
}

// Row 13. Catches growth by a fixed small step: 1000 calls, or by far too much.
HEAP_TEST(Growth, row_13_few_grows_to_64_MiB) {
  for (size_t i = 0; i < 64 * KiB; ++i) ASSERT_NE(heap::malloc(KiB), nullptr);
  EXPECT_LE(stats().grow_count, 95u);
  EXPECT_LT(stats().committed_bytes, 64 * MiB * 5 / 4);
}

// Row 12. Catches statistics that can't tell a leak from a high-water mark.
HEAP_TEST(Growth, row_12_statistics_tell_live_from_peak) {
  void* const block = heap::malloc(10 * MiB);
  heap::free(block);
  EXPECT_EQ(stats().live_bytes, 0u);
  EXPECT_EQ(stats().live_blocks, 0u);
  EXPECT_GE(stats().used_peak_bytes, 10 * MiB);
  EXPECT_GE(stats().largest_free_bytes, 10 * MiB);
  EXPECT_GE(stats().committed_bytes, stats().free_bytes);
}

// Rows 15, 50. Catches a large first step.
HEAP_TEST(Growth, row_15_tiny_program_takes_little) {
  size_t const static_bytes = stats().committed_bytes;
  ASSERT_NE(heap::malloc(10), nullptr);
  if (test::fake_os) {
    EXPECT_LE(stats().committed_bytes - static_bytes, 2 * 64 * KiB);
  }
  for (int i = 0; i < 100; ++i) ASSERT_NE(heap::malloc(100), nullptr);
  if (test::fake_os) {
    EXPECT_LE(stats().committed_bytes - static_bytes, 3 * 64 * KiB);
  }
  EXPECT_LE(stats().used_peak_bytes, 100 * KiB);
}

// Row 17. Catches aligned blocks made of size + alignment whose head and tail are lost.
HEAP_TEST(Growth, row_17_aligned_blocks_lose_nothing) {
  void* blocks[6];
  for (void*& block : blocks) {
    block = heap::aligned_alloc(8 * MiB, 8 * MiB);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(test::is_aligned(block, 8 * MiB));
  }
  // Whether neighbours touch or a header keeps them apart: what lies between is free memory.
  ashlar_stats_t const taken = stats();
  EXPECT_LT(taken.committed_bytes, 13 * 8 * MiB);
  EXPECT_GE(taken.free_bytes + 6 * 8 * MiB + 256 * KiB, taken.committed_bytes);
  if (taken.largest_free_bytes > KiB) {
    EXPECT_NE(heap::malloc(taken.largest_free_bytes - KiB), nullptr);
    EXPECT_EQ(stats().committed_bytes, taken.committed_bytes);
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Row 46. Catches an aligned block that costs twice its size, or whose skipped head is lost.
HEAP_TEST(Growth, row_46_alignment_costs_no_more_than_itself) {
  for (size_t alignment : {MiB, 4 * MiB}) {
    size_t const before = stats().committed_bytes;
    void* const block = heap::aligned_alloc(alignment, 32 * MiB);
    ASSERT_NE(block, nullptr);
    EXPECT_LE(stats().committed_bytes - before, (32 * MiB + alignment) * 17 / 16 + 192 * KiB);
    size_t const taken = stats().committed_bytes;
    size_t const largest = stats().largest_free_bytes;
    ASSERT_GT(largest, 0u);
    ASSERT_NE(heap::malloc(largest / 2), nullptr);
    EXPECT_EQ(stats().committed_bytes, taken);
  }
}

// Row 48. Catches an aligned block that is cut out of a free block and spoils the one before it.
HEAP_TEST(Growth, row_48_aligned_block_leaves_its_neighbours) {
  for (size_t alignment = 32; alignment <= 64 * KiB; alignment *= 2) {
    void* before = heap::malloc(5000);
    void* const hole = heap::malloc(3 * alignment + 3000);
    void* const after = heap::malloc(5000);
    test::fill(before, 5000, 1);
    test::fill(after, 5000, 2);
    heap::free(hole);
    void* const block = heap::aligned_alloc(alignment, alignment + 24);
    test::fill(block, heap::usable_size(block), 3);
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
    ASSERT_TRUE(test::filled(before, 5000, 1));
    ASSERT_TRUE(test::filled(after, 5000, 2));
    heap::free(after);
    before = heap::realloc(before, 4000);
    ASSERT_TRUE(test::filled(before, 4000, 1));
    ASSERT_TRUE(test::filled(block, heap::usable_size(block), 3));
    heap::free(block);
    heap::free(before);
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  }
}

void run_cycle(uint64_t seed, size_t most, size_t total) {
  test::Random random(seed);
  std::vector<void*> blocks;
  for (size_t sum = 0; sum < total;) {
    size_t const size = random.between(1, size_t{1} << random.between(4, 22)) % most + 1;
    blocks.push_back(heap::malloc(size));
    ASSERT_NE(blocks.back(), nullptr);
    sum += size;
    if (random.one_in(3)) {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      heap::free(blocks.back());
      blocks.pop_back();
    }
  }
  while (!blocks.empty()) {
    std::swap(blocks[random.below(blocks.size())], blocks.back());
    heap::free(blocks.back());
    blocks.pop_back();
  }
}

// Catches emptied memory that is not found again: the same cycle must reach a plateau at once.
HEAP_TEST(Growth, same_cycle_reaches_a_plateau) {
  for (size_t most : {64 * size_t{1}, size_t{1000}, 20 * KiB, 4 * MiB}) {
    run_cycle(most, most, 8 * MiB);
    run_cycle(most, most, 8 * MiB);
    size_t const plateau = stats().committed_bytes;
    for (int i = 0; i < 12; ++i) run_cycle(most, most, 8 * MiB);
    // Pages lie otherwise each time: once in a while a few of them more are needed.
    EXPECT_LE(stats().committed_bytes, plateau + plateau / 16) << most;
    EXPECT_EQ(stats().live_blocks, 0u);
  }
}

// Catches pages that stay with one class: each cycle wants the same memory for other sizes.
HEAP_TEST(Growth, cycles_of_other_sizes_use_the_same_memory) {
  constexpr size_t total = 16 * MiB;
  size_t plateau = 0;
  for (int round = 0; round < 3; ++round) {
    for (size_t size : {size_t{32}, size_t{1000}, size_t{100}, total, size_t{8}, 40 * KiB,
                        size_t{600}, 3 * KiB, 4 * MiB, size_t{16}}) {
      // Two thirds of the memory, so that rounding and headers do not decide.
      std::vector<void*> blocks(total / std::max(size, size_t{64}) * 2 / 3 + 1);
      for (void*& block : blocks) {
        block = heap::malloc(size);
        ASSERT_NE(block, nullptr);
      }
      for (void* block : blocks) heap::free(block);
      if (round == 0) plateau = std::max(plateau, stats().committed_bytes);
    }
    EXPECT_LE(stats().committed_bytes, plateau) << round;
  }
  EXPECT_LT(plateau, total * 5 / 4);
  // All of it is one free run again but for the held pages and the allocator's own tables.
  void* const all = heap::malloc(total);
  ASSERT_NE(all, nullptr);
  EXPECT_LE(stats().committed_bytes, plateau);
}

// Catches a heap that keeps one empty page per class when memory would have to grow for want of it.
HEAP_TEST(Growth, different_cycles_stay_near_the_peak) {
  size_t after_ten = 0;
  for (uint64_t i = 1; i <= 60; ++i) {
    run_cycle(i, 4 * MiB, 24 * MiB);
    if (i == 10) after_ten = stats().committed_bytes;
  }
  EXPECT_LT(stats().committed_bytes, after_ten * 3 / 2);
}

// Catches a reserve that takes too little for one large block, for several or for small ones.
HEAP_TEST(Growth, reserve_serves_without_growing) {
  ASSERT_EQ(ashlar_reserve(8 * MiB), 0);
  size_t grows = stats().grow_count;
  ASSERT_GE(grows, 1u);
  void* const one = heap::malloc(8 * MiB - 64);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(stats().grow_count, grows);

  ASSERT_EQ(ashlar_reserve(8 * MiB), 0);
  grows = stats().grow_count;
  void* four[4];
  for (void*& block : four) {
    block = heap::malloc(2 * MiB - 64);
    ASSERT_NE(block, nullptr);
  }
  EXPECT_EQ(stats().grow_count, grows);

  ASSERT_EQ(ashlar_reserve(8 * MiB), 0);
  grows = stats().grow_count;
  for (size_t sum = 0; sum < 7 * MiB; sum += 128) ASSERT_NE(heap::malloc(112), nullptr);
  EXPECT_EQ(stats().grow_count, grows);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches a reserve that does not suffice for small blocks, with the eighth more that they cost.
HEAP_TEST(Growth, reserve_suffices_for_small_blocks) {
  for (size_t size : {size_t{16}, size_t{24}, size_t{48}, size_t{100}, size_t{1000}}) {
    constexpr size_t sum = 4 * MiB;
    ASSERT_EQ(ashlar_reserve(sum + sum / 8), 0);
    size_t const grows = stats().grow_count;
    // Each counted with a header.
    void* const first = heap::malloc(size);
    for (size_t left = sum; left > heap::usable_size(first) + 16;) {
      void* const block = heap::malloc(size);
      ASSERT_NE(block, nullptr);
      left -= heap::usable_size(block) + sizeof(size_t);
    }
    EXPECT_EQ(stats().grow_count, grows) << size;
  }
}

// Catches a reserve that takes memory although enough is free, or counts it as used.
HEAP_TEST(Growth, reserve_takes_only_what_is_missing) {
  ASSERT_EQ(ashlar_reserve(0), 0);
  ASSERT_EQ(ashlar_reserve(16 * MiB), 0);
  ashlar_stats_t const first = stats();
  EXPECT_GE(first.committed_bytes, 16 * MiB);
  if (test::fake_os) {
    EXPECT_LT(first.committed_bytes, 16 * MiB + 256 * KiB);
  }
  EXPECT_LT(first.used_peak_bytes, MiB);
  ASSERT_EQ(ashlar_reserve(16 * MiB), 0);
  ASSERT_EQ(ashlar_reserve(MiB), 0);
  EXPECT_EQ(stats().committed_bytes, first.committed_bytes);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches a reserve whose size wraps, or that reports success for what can't be had.
HEAP_TEST(Growth, impossible_reserve_is_refused) {
  void* const kept = heap::malloc(100);
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 65536, SIZE_MAX / 2 + 1}) {
    size_t const before = stats().committed_bytes;
    errno = 0;
    EXPECT_EQ(ashlar_reserve(bytes), -1) << bytes;
    EXPECT_EQ(errno, ENOMEM) << bytes;
    EXPECT_EQ(stats().committed_bytes, before);
  }
  heap::free(kept);
  EXPECT_NE(heap::malloc(MiB), nullptr);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches a growth setting that is ignored or not told.
HEAP_TEST(Growth, set_growth_decides_how_often_memory_grows) {
  EXPECT_EQ(ashlar_set_growth(1), 16u);
  for (size_t i = 0; i < 32 * KiB; ++i) ASSERT_NE(heap::malloc(KiB), nullptr);
  EXPECT_LE(stats().grow_count, 14u);
  EXPECT_EQ(ashlar_set_growth(0), 1u);
  size_t const before = stats().committed_bytes;
  size_t const size = stats().largest_free_bytes + MiB;
  ASSERT_NE(heap::malloc(size), nullptr);
  if (test::fake_os) {
    EXPECT_LE(stats().committed_bytes, before + size + 128 * KiB);
  }
  EXPECT_EQ(ashlar_set_growth(16), 0u);
}

// Catches a divisor of 0 that still takes a part of the heap.
HEAP_TEST(Growth, growth_of_zero_takes_no_more_than_needed) {
  (void)ashlar_set_growth(0);
  size_t asked = stats().committed_bytes;
  for (int i = 0; i < 40; ++i) {
    ASSERT_NE(heap::malloc(MiB), nullptr);
    asked += MiB;
    if (test::fake_os) {
      ASSERT_LE(stats().committed_bytes, asked + asked / 256 + 192 * KiB) << i;
    }
  }
}

}  // namespace
