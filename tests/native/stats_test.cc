// Statistics are exact, good_size tells the truth, and ashlar_check finds planted damage.
#include <ashlar.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "profile.h"
#include "support.h"
#ifdef ASHLAR_FAKE_OS
#include "fake_os/fake_os.h"
#endif

namespace {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;

ashlar_stats_t stats() {
  ashlar_stats_t now;
  memset(&now, 0xAB, sizeof now);
  ashlar_stats(&now);
  return now;
}

// Catches counters that start elsewhere than at nothing.
HEAP_TEST(Stats, of_a_virgin_heap) {
  ashlar_stats_t const now = stats();
  EXPECT_EQ(now.allocations, 0u);
  EXPECT_EQ(now.frees, 0u);
  EXPECT_EQ(now.live_blocks, 0u);
  EXPECT_EQ(now.live_bytes, 0u);
  EXPECT_EQ(now.grow_count, 0u);
  EXPECT_EQ(now.free_bytes, 0u);
  EXPECT_EQ(now.largest_free_bytes, 0u);
  EXPECT_LT(now.committed_bytes, 64 * KiB);  // static data
  EXPECT_EQ(now.used_peak_bytes, ashlar_used_peak());
  EXPECT_EQ(ashlar_check(), 0);
}

// Catches a counter that misses a path: each is compared with a model after every few steps.
HEAP_TEST(Stats, every_field_against_a_model) {
  test::Random random(test::printed_seed());
  std::map<void*, size_t> live;
  uint64_t allocations = 0, frees = 0;
  size_t peak_before = 0, peak_live = 0;
  std::vector<void*> order;
  for (int i = 0; i < 40000; ++i) {
    size_t const size = random.one_in(40) ? random.between(1000, 200000)
                                          : random.between(0, size_t{8} << random.between(0, 8));
    unsigned const kind = static_cast<unsigned>(random.below(9));
    if (kind < 4 || order.empty()) {
      void* const block = kind == 0 ? ashlar_calloc(1, size)
                          : kind == 1
                              ? ashlar_aligned_alloc(size_t{1} << random.between(0, 13), size)
                              : ashlar_malloc(size);
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(live.emplace(block, ashlar_usable_size(block)).second);
      order.push_back(block);
      ++allocations;
    } else if (kind < 6) {
      std::swap(order[random.below(order.size())], order.back());
      void* const from = order.back();
      void* const to = ashlar_realloc(from, size);
      ASSERT_NE(to, nullptr);
      if (to != from) {
        ++allocations;
        ++frees;
      }
      live.erase(from);
      ASSERT_TRUE(live.emplace(to, ashlar_usable_size(to)).second);
      order.back() = to;
    } else if (kind < 8 || order.size() > 3000) {
      std::swap(order[random.below(order.size())], order.back());
      ashlar_free(order.back());
      live.erase(order.back());
      order.pop_back();
      ++frees;
    } else {
      // What fails or does nothing must not count.
      EXPECT_EQ(ashlar_malloc(test::opaque(SIZE_MAX)), nullptr);
      EXPECT_EQ(ashlar_realloc(order.back(), test::opaque(SIZE_MAX)), nullptr);
      EXPECT_EQ(ashlar_aligned_alloc(3, 8), nullptr);
      ashlar_free(nullptr);
    }
    if (i % 97 != 0 && i != 39999) continue;
    size_t live_bytes = 0;
    for (const auto& [block, usable] : live) live_bytes += usable;
    ashlar_stats_t const now = stats();
    ASSERT_EQ(now.allocations, allocations) << i;
    ASSERT_EQ(now.frees, frees) << i;
    ASSERT_EQ(now.live_blocks, live.size()) << i;
    ASSERT_EQ(now.live_bytes, live_bytes) << i;
    ASSERT_EQ(now.used_peak_bytes, ashlar_used_peak());
    ASSERT_GE(now.used_peak_bytes, peak_before) << "a peak fell";
    peak_before = now.used_peak_bytes;
    peak_live = std::max(peak_live, live_bytes);
    ASSERT_GE(now.used_peak_bytes, peak_live);
    ASSERT_LE(now.used_peak_bytes, now.committed_bytes);
    ASSERT_LE(now.largest_free_bytes, now.free_bytes);
    ASSERT_LE(now.free_bytes + live_bytes, now.committed_bytes);
#ifdef ASHLAR_FAKE_OS
    ASSERT_GE(now.committed_bytes, fake_os::bytes_taken());
    ASSERT_LT(now.committed_bytes, fake_os::bytes_taken() + 64 * KiB);
    ASSERT_EQ(now.grow_count, fake_os::grow_calls());
#endif
  }
  for (void* block : order) ashlar_free(block);
  ashlar_stats_t const end = stats();
  EXPECT_EQ(end.allocations, allocations);
  EXPECT_EQ(end.frees, allocations);
  EXPECT_EQ(end.live_blocks, 0u);
  EXPECT_EQ(end.live_bytes, 0u);
  // All is free but the allocator's own tables and a held page per class.
  EXPECT_GE(end.free_bytes * 10, (end.committed_bytes - 64 * KiB) * 5);
}

// Catches a largest run that is not one, or that no request can have.
HEAP_TEST(Stats, largest_free_run_can_be_had) {
  test::Random random(5);
  std::vector<void*> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back(ashlar_malloc(random.between(1000, 60000)));
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 3 != 0 || (i > 100 && i < 140)) ashlar_free(blocks[i]);
  }
  ashlar_stats_t const before = stats();
  ASSERT_GT(before.largest_free_bytes, 100000u);
  EXPECT_NE(ashlar_malloc(before.largest_free_bytes - 64), nullptr);
  ashlar_stats_t const after = stats();
  EXPECT_EQ(after.committed_bytes, before.committed_bytes);
  EXPECT_EQ(after.grow_count, before.grow_count);
  EXPECT_NEAR(static_cast<double>(before.free_bytes - after.free_bytes),
              static_cast<double>(before.largest_free_bytes), 64.0);
}

// Catches memory that was taken but never used and is counted as used; and a peak that falls.
HEAP_TEST(Stats, used_peak_counts_use_and_never_falls) {
  void* const first = ashlar_malloc(3 * MiB);
  size_t const with_block = ashlar_used_peak();
  EXPECT_GE(with_block, 3 * MiB);
  EXPECT_LT(with_block, 3 * MiB + 256 * KiB);
  ashlar_free(first);
  EXPECT_EQ(ashlar_used_peak(), with_block);
  ASSERT_EQ(ashlar_reserve(32 * MiB), 0);
  EXPECT_LT(ashlar_used_peak(), 4 * MiB);
  ASSERT_NE(ashlar_malloc(2 * MiB), nullptr);
  EXPECT_LT(ashlar_used_peak(), with_block + 128 * KiB) << "the freed memory was not used first";
  ASSERT_NE(ashlar_malloc(8 * MiB), nullptr);
  EXPECT_GE(ashlar_used_peak(), 10 * MiB);
}

// Catches a good size that a block does not have, that is not the best one, or that wraps.
HEAP_TEST(Stats, good_size_is_true) {
  for (int round = 0; round < 2; ++round) {
    for (size_t size = 0; size < 200000; size += size < 5000 ? 1 : 977) {
      size_t const good = ashlar_good_size(size);
      ASSERT_GE(good, size);
      ASSERT_EQ(ashlar_good_size(good), good) << size;
      void* const block = ashlar_malloc(size);
      ASSERT_GE(ashlar_usable_size(block), good) << size;
      void* const of_good_size = ashlar_malloc(good);
      ASSERT_GE(ashlar_usable_size(of_good_size), good) << size;
      if (size % 2 == 0) ashlar_free(block);
      ashlar_free(of_good_size);
    }
  }
  for (size_t size : {static_cast<size_t>(PTRDIFF_MAX), SIZE_MAX - 65536, SIZE_MAX - 1, SIZE_MAX}) {
    EXPECT_GE(ashlar_good_size(size), size);
  }
  EXPECT_EQ(ashlar_good_size(SIZE_MAX), SIZE_MAX);
}

// Catches a binary whose maker can't be told from it.
TEST(Stats, version_names_version_and_profile) {
  std::string const expected = "ashlar " + std::to_string(ASHLAR_VERSION_MAJOR) + "." +
                               std::to_string(ASHLAR_VERSION_MINOR) + "." +
                               std::to_string(ASHLAR_VERSION_PATCH) + " " + test::profile_name;
  EXPECT_EQ(ashlar_version(), expected);
}

// Planted damage: each runs in a child, since the heap is spoilt afterwards.

enum class Verdict { sound, damaged, crashed };

// The verdict of ashlar_check() after `plant`, which must name the fault when there is one.
Verdict check_after(const std::function<void()>& plant) {
  test::Ending const ending = test::end_of([&] {
    plant();
    if (ashlar_check() == 0) _exit(10);
    const char* const expected =
        TEST_NUMERIC_MESSAGES ? "ashlar: 5 0x" : "ashlar: corrupted header at 0x";
    if (strncmp(ashlar_last_message(), expected, strlen(expected)) != 0) {
      fprintf(stderr, "\"%s\"", ashlar_last_message());
      fflush(stderr);
      _exit(11);
    }
    _exit(ashlar_check() == 1 ? 12 : 13);  // it says so again
  });
  EXPECT_TRUE(ending.signal == 0 && ending.exit_code != 11 && ending.exit_code != 13)
      << "signal " << ending.signal << ", exit code " << ending.exit_code << " "
      << ending.error_output;
  if (ending.exit_code == 10) return Verdict::sound;
  return ending.exit_code == 12 ? Verdict::damaged : Verdict::crashed;
}

#if TEST_CHECKS_MISUSE

std::vector<uintptr_t> garbage(char* block) {
  return {0x41414141u,
          1,
          SIZE_MAX,
          SIZE_MAX - 15,
          test::address(block) + 1,
          reinterpret_cast<uintptr_t>(&check_after),
          reinterpret_cast<uintptr_t>(__builtin_frame_address(0))};
}

void overwrite(void* at, uintptr_t value) { memcpy(at, &value, sizeof value); }

// Rows 95, 99. Catches a check that follows a free block's link without looking, or not at all.
HEAP_TEST(Check, finds_a_damaged_link) {
  for (size_t size : {size_t{16}, size_t{100}, size_t{900}, size_t{5000}, size_t{100000}}) {
    std::vector<char*> blocks;
    for (int i = 0; i < 600; ++i) blocks.push_back(static_cast<char*>(ashlar_malloc(size)));
    std::sort(blocks.begin(), blocks.end());
    for (size_t i = 200; i < 300; i += 2) ashlar_free(blocks[i]);
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
    for (uintptr_t value : garbage(blocks[250])) {
      EXPECT_EQ(check_after([&] { overwrite(blocks[250], value); }), Verdict::damaged)
          << size << " " << std::hex << value;
    }
    // To itself, to a live block, to the stretch between blocks: loops and wrong neighbours.
    for (uintptr_t value :
         {test::address(blocks[250]), test::address(blocks[251]), test::address(blocks[252]) + 8}) {
      EXPECT_EQ(check_after([&] { overwrite(blocks[250], value); }), Verdict::damaged)
          << size << " " << std::hex << value;
    }
    for (char*& block : blocks) block = nullptr;
  }
}

// Rows 95, 99. Catches statistics that walk over a header of 0 for ever, and a check that does not
// ask for the seal at the end of a large block (on 32 bits).
HEAP_TEST(Check, damage_behind_a_large_block) {
  char* const first = static_cast<char*>(ashlar_malloc(100000));
  char* const second = static_cast<char*>(ashlar_malloc(5000));
  ASSERT_NE(second, nullptr);
  char* const past = first + ashlar_usable_size(first);
  EXPECT_EQ(check_after([&] { overwrite(past, 0); }), Verdict::damaged);
  EXPECT_EQ(check_after([&] {
              overwrite(second - sizeof(size_t), 0);
              (void)stats();
            }),
            Verdict::damaged);
}

// Rows 95, 99. Catches a check that walks from block to block by sizes which it doesn't compare.
HEAP_TEST(Check, finds_a_damaged_header) {
  std::vector<char*> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back(static_cast<char*>(ashlar_malloc(5000)));
  std::sort(blocks.begin(), blocks.end());
  ashlar_free(blocks[12]);
  ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  for (size_t i : {size_t{5}, size_t{11}, size_t{13}}) {
    // One word past the end of the block before, as an overflowing program does.
    char* const overrun = blocks[i] - sizeof(size_t);
    for (uintptr_t value : garbage(blocks[i])) {
      EXPECT_EQ(check_after([&] { overwrite(overrun, value); }), Verdict::damaged)
          << i << " " << std::hex << value;
    }
    EXPECT_EQ(check_after([&] { overwrite(overrun, 0); }), Verdict::damaged) << i;
    for (unsigned bit = 4; bit < 16; ++bit) {
      EXPECT_EQ(check_after([&] {
                  uintptr_t word = 0;
                  memcpy(&word, overrun, sizeof word);
                  overwrite(overrun, word ^ (uintptr_t{1} << bit));
                }),
                Verdict::damaged)
          << i << ", bit " << bit;
    }
  }
}

// Catches damage of any kind that crashes the check: it must always come back.
HEAP_TEST(Check, never_stops_the_program) {
  test::Random random(test::printed_seed());
  std::vector<char*> blocks;
  for (int i = 0; i < 2000; ++i) {
    blocks.push_back(static_cast<char*>(ashlar_malloc(random.between(1, 3000))));
    if (i % 3 == 2) {
      ashlar_free(blocks.back());
      blocks.pop_back();
    }
  }
  int found = 0;
  int const rounds = test::sanitized ? 40 : 200;
  for (int round = 0; round < rounds; ++round) {
    char* const block = blocks[random.below(blocks.size())];
    size_t const length = size_t{16} << random.below(6);
    uint64_t const tag = random.next();
    bool const freed_first = random.one_in(2);
    Verdict const verdict = check_after([&] {
      // A write after free, or past the end.
      size_t const usable = ashlar_usable_size(block);
      if (freed_first) ashlar_free(block);
      test::fill(freed_first ? block : block + usable, length, tag);
    });
    EXPECT_NE(verdict, Verdict::crashed) << "round " << round;
    found += verdict == Verdict::damaged;
  }
  EXPECT_GT(found, rounds / 4) << "hardly any damage was seen";
}

#endif

// Catches a check that raises an alarm over bytes that are the program's.
HEAP_TEST(Check, any_contents_are_sound) {
  std::vector<void*> blocks;
  for (size_t size = 1; size < 5000; size += 7) {
    blocks.push_back(ashlar_malloc(size));
    memset(blocks.back(), static_cast<int>(size), ashlar_usable_size(blocks.back()));
    if (size % 2 == 0) {
      ashlar_free(blocks.back());
      blocks.pop_back();
    }
  }
  EXPECT_EQ(check_after([] {}), Verdict::sound);
  for (void* block : blocks) memset(block, 0xFF, ashlar_usable_size(block));
  EXPECT_EQ(check_after([] {}), Verdict::sound);
  for (void* block : blocks) ashlar_free(block);
  EXPECT_EQ(check_after([] {}), Verdict::sound);
}

}  // namespace
