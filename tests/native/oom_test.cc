// Memory that ends: NULL with ENOMEM and a heap that still works. Section B of the field report.
#include <ashlar.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "fake_os/fake_os.h"
#include "names.h"
#include "profile.h"
#include "support.h"

namespace {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;
constexpr size_t unit = 64 * KiB;

void* must_fail(size_t size) {
  errno = 0;
  void* const block = heap::malloc(size);
  if (block == nullptr) {
    EXPECT_EQ(errno, ENOMEM);
  }
  return block;
}

// Takes blocks of `size` until memory ends.
std::vector<void*> exhaust(size_t size) {
  std::vector<void*> blocks;
  while (void* const block = must_fail(size)) {
    memset(block, 0x77, heap::usable_size(block));
    blocks.push_back(block);
  }
  return blocks;
}

// Rows 10, 21, 29. Catches an abort, a missing errno, or a heap that is broken after the refusal.
HEAP_TEST(Oom, null_and_enomem_then_the_heap_works) {
  fake_os::set_limit(4 * MiB);
  for (size_t size : {size_t{1}, size_t{24}, size_t{200}, size_t{1000}, size_t{5000}, size_t{70000},
                      size_t{1000000}}) {
    std::vector<void*> blocks = exhaust(size);
    // Whatever was left over from the sizes before counts, so most of the memory must be used.
    ASSERT_GT(blocks.size() * std::max(size, 4 * sizeof(void*)), 2 * MiB) << size;
    EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
    errno = 0;
    EXPECT_EQ(heap::calloc(1, 8 * MiB), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(heap::aligned_alloc(4096, 8 * MiB), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    // One block freed is one block to be had.
    heap::free(blocks.back());
    blocks.back() = heap::malloc(size);
    EXPECT_NE(blocks.back(), nullptr) << size;
    for (void* block : blocks) heap::free(block);
    EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  }
}

// Row 16. Catches memory that a full heap lost for good: what was free before must be free again.
HEAP_TEST(Oom, freed_memory_is_reusable) {
  fake_os::set_limit(4 * MiB);
  for (void* block : exhaust(3 * KiB)) heap::free(block);
  for (size_t size :
       {size_t{16}, size_t{700}, size_t{100}, size_t{2000}, size_t{1024}, size_t{48}}) {
    size_t const least = 4 * MiB / (size + 16) * 9 / 10;
    for (int round = 0; round < 2; ++round) {
      std::vector<void*> const blocks = exhaust(size);
      EXPECT_GE(blocks.size(), least) << size;
      for (void* block : blocks) heap::free(block);
    }
  }
  EXPECT_NE(heap::malloc(3 * MiB + 512 * KiB), nullptr);
}

// Catches empty pages that are kept while memory is refused: every one must be given back first.
HEAP_TEST(Oom, every_empty_page_is_reclaimed_before_null) {
  fake_os::set_limit(2 * MiB);
  for (size_t size = 8; size <= 1024; size += 8) {
    std::vector<void*> blocks(60);
    for (void*& block : blocks) block = heap::malloc(size);
    for (void* block : blocks) heap::free(block);
  }
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  EXPECT_EQ(stats.live_blocks, 0u);
  // A lone page that is held anywhere in the middle would forbid it.
  void* const most = heap::malloc(2 * MiB - 96 * KiB);
  EXPECT_NE(most, nullptr);
  heap::free(most);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// As above for small requests: another class must get the page that the full heap holds empty.
HEAP_TEST(Oom, held_pages_serve_other_classes) {
  fake_os::set_limit(2 * MiB);
  std::vector<void*> const large = exhaust(512);
  for (void* block : large) heap::free(block);
  std::vector<void*> const filling = exhaust(8 * KiB);
  std::vector<void*> rest = exhaust(64);
  for (void* block : rest) heap::free(block);
  std::vector<void*> const other = exhaust(40);
  EXPECT_GE(other.size() + 8, rest.size());
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Row 26. Catches a crash when not one byte is left.
HEAP_TEST(Oom, last_byte_exhausted) {
  fake_os::set_limit(MiB);
  std::vector<void*> blocks;
  for (size_t size = 256 * KiB;; size /= 2) {
    for (void* block : exhaust(size)) blocks.push_back(block);
    if (size == 0) break;
  }
  for (size_t size : {size_t{0}, size_t{1}, size_t{8}, size_t{16}, size_t{1000}, size_t{100000}}) {
    ASSERT_EQ(must_fail(size), nullptr) << size;
    errno = 0;
    ASSERT_EQ(heap::realloc(nullptr, size), nullptr);
    ASSERT_EQ(errno, ENOMEM);
    ASSERT_EQ(heap::calloc(1, size), nullptr);
    ASSERT_EQ(heap::aligned_alloc(32, size), nullptr);
  }
  for (size_t k = 0; k <= 64; ++k) ASSERT_EQ(must_fail(test::opaque(SIZE_MAX - k)), nullptr);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  EXPECT_EQ(stats.live_blocks, blocks.size());
  for (void* block : blocks) heap::free(block);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  EXPECT_NE(heap::malloc(900 * KiB), nullptr);
}

// Catches a heap with nothing at all: the very first call is refused.
HEAP_TEST(Oom, no_memory_from_the_start) {
  fake_os::set_limit(0);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(must_fail(1), nullptr);
    ASSERT_EQ(must_fail(100000), nullptr);
    ASSERT_EQ(heap::calloc(1, 1), nullptr);
    ASSERT_EQ(heap::realloc(nullptr, 1), nullptr);
    ASSERT_EQ(heap::aligned_alloc(64, 1), nullptr);
    ASSERT_EQ(ashlar_reserve(1), -1);
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  }
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  EXPECT_EQ(stats.allocations, 0u);
  fake_os::set_limit(4 * MiB);
  EXPECT_NE(heap::malloc(100000), nullptr);
}

// What a program does in which any call may be refused. Contents are checked throughout.
void run_with_refusals(uint64_t seed, unsigned& failures) {
  struct Block {
    void* at;
    size_t size;
  };
  test::Random random(seed);
  std::vector<Block> blocks;
  for (int i = 0; i < 400; ++i) {
    size_t const size = random.one_in(4) ? random.between(1000, 100000) : random.between(1, 1200);
    unsigned const kind = static_cast<unsigned>(random.below(5));
    if (kind == 0 && !blocks.empty()) {
      std::swap(blocks[random.below(blocks.size())], blocks.back());
      Block& block = blocks.back();
      errno = 0;
      void* const moved = heap::realloc(block.at, size);
      ASSERT_TRUE(test::filled(moved != nullptr ? moved : block.at,
                               moved != nullptr ? std::min(size, block.size) / 8 * 8 : block.size,
                               block.size));
      if (moved != nullptr) {
        block = {moved, size};
        test::fill(moved, size, size);
      } else {
        ASSERT_EQ(errno, ENOMEM);
        ++failures;
      }
    } else if (kind == 1 && !blocks.empty()) {
      ASSERT_TRUE(test::filled(blocks.back().at, blocks.back().size, blocks.back().size));
      heap::free(blocks.back().at);
      blocks.pop_back();
    } else {
      errno = 0;
      void* const block = kind == 2 ? heap::calloc(1, size)
                          : kind == 3
                              ? heap::aligned_alloc(size_t{1} << random.between(3, 14), size)
                              : heap::malloc(size);
      if (block == nullptr) {
        ASSERT_EQ(errno, ENOMEM);
        ++failures;
        continue;
      }
      if (kind == 2) {
        ASSERT_TRUE(test::all_zero(block, size));
      }
      test::fill(block, size, size);
      blocks.push_back({block, size});
    }
  }
  ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  for (const Block& block : blocks) {
    ASSERT_TRUE(test::filled(block.at, block.size, block.size));
    heap::free(block.at);
  }
  ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches any place that forgets to look at a refusal: each call to grow is refused once, in turn.
HEAP_TEST(Oom, refusal_at_every_single_call) {
  unsigned n = 0;
  bool reached = true;
  while (reached) {
    ++n;
    test::Ending const ending = test::end_of([&] {
      (void)ashlar_set_growth(n % 2 == 0 ? 16 : 0);
      fake_os::refuse_nth(n);
      unsigned failures = 0;
      run_with_refusals(11, failures);
      if (testing::Test::HasFailure()) _exit(1);
      if (fake_os::refused_calls() == 0) _exit(2);
    });
    ASSERT_EQ(ending.signal, 0) << n << ": " << ending.error_output;
    ASSERT_NE(ending.exit_code, 1) << n;
    reached = ending.exit_code == 0;
    ASSERT_LT(n, 2000u);
  }
  EXPECT_GT(n, 10u) << "too few calls were refused to mean anything";
}

// As above with every limit: the place where memory ends moves through the whole program.
HEAP_TEST(Oom, every_limit) {
  unsigned failing_limits = 0;
  for (size_t units = 1; units < 100; units += units < 24 ? 1 : 7) {
    test::Ending const ending = test::end_of([&] {
      fake_os::set_limit(units * unit);
      unsigned failures = 0;
      run_with_refusals(units, failures);
      if (testing::Test::HasFailure()) _exit(1);
      _exit(failures != 0 ? 0 : 2);
    });
    ASSERT_EQ(ending.signal, 0) << units << ": " << ending.error_output;
    ASSERT_NE(ending.exit_code, 1) << units;
    failing_limits += ending.exit_code == 0;
  }
  EXPECT_GT(failing_limits, 20u);
}

// Catches a refused large step that is not tried again with what is needed.
HEAP_TEST(Oom, a_smaller_step_is_tried_after_a_refusal) {
  (void)ashlar_set_growth(1);
  fake_os::set_limit(10 * MiB);
  ASSERT_NE(heap::malloc(6 * MiB), nullptr);  // twice that does not fit
  ASSERT_NE(heap::malloc(2 * MiB), nullptr);
  ASSERT_NE(heap::malloc(MiB), nullptr);
}

// Row 25. Catches a failure path that allocates: the second failure must find everything as it was.
HEAP_TEST(Oom, failure_path_changes_nothing) {
  fake_os::set_limit(2 * MiB);
  std::vector<void*> const blocks = exhaust(1000);
  ashlar_stats_t first, second;
  (void)must_fail(100000);
  ashlar_stats(&first);
  unsigned calls = fake_os::grow_calls();
  (void)must_fail(100000);
  unsigned const calls_of_one = fake_os::grow_calls() - calls;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(must_fail(100000), nullptr);
  ashlar_stats(&second);
  EXPECT_EQ(memcmp(&first, &second, sizeof first), 0);
  EXPECT_LE(calls_of_one, 4u);
  EXPECT_EQ(fake_os::grow_calls() - calls, 101 * calls_of_one);
}

// Catches a refused reserve that keeps part of it or breaks the heap.
HEAP_TEST(Oom, refused_reserve) {
  fake_os::set_limit(4 * MiB);
  ASSERT_NE(heap::malloc(MiB), nullptr);
  errno = 0;
  EXPECT_EQ(ashlar_reserve(5 * MiB), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ashlar_reserve(2 * MiB), 0);
  EXPECT_NE(heap::malloc(2 * MiB - 64), nullptr);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Row 96. Catches memory freed by a program near its limit that only a smaller block can use.
HEAP_TEST(Oom, a_block_of_the_whole_memory_again_and_again) {
  fake_os::set_limit(8 * MiB);
  for (int i = 0; i < 20; ++i) {
    void* const block = heap::malloc(8 * MiB - 128 * KiB);
    ASSERT_NE(block, nullptr) << i;
    heap::free(block);
    std::vector<void*> small;
    for (int k = 0; k < 3000; ++k) small.push_back(heap::malloc(static_cast<size_t>(k) % 2000));
    for (void* each : small) heap::free(each);
  }
}

// Row 24. Catches a limit that is not felt, or felt too early: seven eighths fit, the eighth not.
HEAP_TEST(Oom, eight_blocks_of_an_eighth) {
  fake_os::set_limit(16 * MiB);
  EXPECT_EQ(exhaust(2 * MiB).size(), 7u);
}

// Row 35. Catches a sum of break and request that wraps: the second block does not fit.
HEAP_TEST(Oom, two_blocks_of_more_than_half_of_the_memory) {
  size_t const size = fake_os::limit() / 8 * 5;
  void* const first = heap::malloc(size);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(must_fail(size), nullptr);
  heap::free(first);
  EXPECT_NE(heap::malloc(size), nullptr);
}

#if UINTPTR_MAX == UINT32_MAX

// A sanitizer's shadow leaves no room for so much.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)

// Row 34. Catches signed sizes: one block of more than 2 GiB where memory allows.
HEAP_TEST(Oom, block_larger_than_half_of_the_address_space) {
  fake_os::set_up({.reserve_bytes = size_t{0x8A000000}});
  constexpr size_t size = 0x88000000;
  char* block = static_cast<char*>(heap::malloc(size));
  ASSERT_NE(block, nullptr);
  block[0] = 1;
  block[size - 1] = 2;
  EXPECT_GE(heap::usable_size(block), size);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  EXPECT_EQ(must_fail(size), nullptr);
  block = static_cast<char*>(heap::realloc(block, size + 100000));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block[0], 1);
  EXPECT_EQ(block[size - 1], 2);
  heap::free(block);
  block = static_cast<char*>(heap::calloc(size / 64, 64));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block[0], 0);
  EXPECT_EQ(block[size - 1], 0);
  heap::free(block);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  EXPECT_NE(heap::aligned_alloc(1 << 20, size), nullptr);
}

#endif

// Rows 27, 40. Catches an end address that wraps: memory that ends at the last 64 KiB of a 32-bit
// address space (the very last unit belongs to the kernel; the wasm tests have it).
HEAP_TEST(Oom, memory_at_the_top_of_the_address_space) {
  fake_os::set_up({.at_top = true});
  size_t const all = fake_os::limit();
  EXPECT_EQ(fake_os::base() + all, 0xFFFF0000u);
  for (size_t size : {size_t{100}, size_t{1000}, size_t{3000}, size_t{20000}, all / 3}) {
    std::vector<void*> const blocks = exhaust(size);
    EXPECT_GE(blocks.size() * size, all / 3 * 2 - 2 * unit) << size;
    EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
    for (void* block : blocks) {
      for (size_t huge : {SIZE_MAX - 32, SIZE_MAX / 2 - 100, size_t{65536} + size}) {
        if (huge > size + unit) {
          ASSERT_EQ(heap::realloc(block, test::opaque(huge)), nullptr);
        }
      }
      if (size < all / 4) break;
    }
    for (void* block : blocks) heap::free(block);
    EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  }
  EXPECT_EQ(fake_os::size(), all);
}

#endif

}  // namespace
