// Linear memory with more than one owner, and the linker's heap: sections A and F of the field
// report on the fake OS.
#include <ashlar.h>
#include <string.h>

#include <vector>

#include "fake_os/fake_os.h"
#include "names.h"
#include "profile.h"
#include "support.h"

namespace {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;
constexpr size_t unit = 64 * KiB;

struct Block {
  void* at;
  size_t size;
};

void check_and_free(std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    ASSERT_TRUE(test::filled(block.at, block.size, test::address(block.at)));
    heap::free(block.at);
  }
  blocks.clear();
}

// Rows 64, 65, 68. Catches the belief that two grows are adjacent, or that memory up to
// memory.size is ours.
HEAP_TEST(Strangers, grow_between_any_two_calls) {
  test::Random random(3);
  std::vector<Block> blocks;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1500; ++i) {
      if (i % 2 == 0) {
        ASSERT_TRUE(fake_os::stranger_grow(random.between(1, 2)) || i > 1000);
      }
      size_t const size = random.one_in(30) ? random.between(1, 3 * unit) : random.between(1, 3000);
      void* const block = heap::malloc(size);
      ASSERT_NE(block, nullptr);
      test::fill(block, size, test::address(block));
      blocks.push_back({block, size});
      if (i % 100 == 0) {
        ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
      }
    }
    check_and_free(blocks);
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
    ASSERT_TRUE(fake_os::strangers_intact());
    if (round == 0) fake_os::stranger_before_every_grow(1);
    if (round == 1) fake_os::stranger_before_every_grow(7);
  }
}

// Row 64. Catches an allocator that takes what was grown before its first call.
HEAP_TEST(Strangers, grew_before_the_first_malloc) {
  ASSERT_TRUE(fake_os::stranger_grow(4));
  void* const block = heap::malloc(100000);
  ASSERT_NE(block, nullptr);
  memset(block, 0xFF, heap::usable_size(block));
  EXPECT_TRUE(fake_os::strangers_intact());
}

// Catches growing blocks in place over a stranger.
HEAP_TEST(Strangers, stop_a_growing_block) {
  size_t size = 1000;
  char* block = static_cast<char*>(heap::malloc(size));
  for (int i = 0; i < 24; ++i) {
    test::fill(block, size, 5);
    if (i % 3 == 0) {
      ASSERT_TRUE(fake_os::stranger_grow(1));
    }
    size_t const larger = size + size / 4 + 20000;
    block = static_cast<char*>(heap::realloc(block, larger));
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(test::filled(block, size / 8 * 8, 5));
    size = larger;
  }
  EXPECT_TRUE(fake_os::strangers_intact());
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches adjacent grows that are not joined: their free memory must serve one block across all.
HEAP_TEST(Strangers, adjacent_grows_are_joined) {
  (void)ashlar_set_growth(0);
  std::vector<void*> blocks;
  for (int i = 0; i < 60; ++i) blocks.push_back(heap::malloc(100 * KiB));
  ASSERT_GE(fake_os::grow_calls(), 20u);
  for (void* block : blocks) heap::free(block);
  unsigned const calls = fake_os::grow_calls();
  ASSERT_NE(heap::malloc(59 * 100 * KiB), nullptr);
  EXPECT_EQ(fake_os::grow_calls(), calls);
}

// Catches memory behind a stranger that is joined all the same, and free memory before it that is
// forgotten.
HEAP_TEST(Strangers, memory_on_both_sides_stays_in_use) {
  void* const first = heap::malloc(3 * MiB);
  ASSERT_TRUE(fake_os::stranger_grow(1));
  void* const second = heap::malloc(3 * MiB);
  ASSERT_NE(second, nullptr);
  heap::free(first);
  heap::free(second);
  size_t const taken = fake_os::bytes_taken();
  for (int i = 0; i < 2; ++i) {
    void* const block = heap::malloc(3 * MiB);
    ASSERT_NE(block, nullptr);
    memset(block, 1, 3 * MiB);
  }
  EXPECT_EQ(fake_os::bytes_taken(), taken);
  EXPECT_TRUE(fake_os::strangers_intact());
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches a copy, or memory taken for old and new block at once, when the last block of memory
// grows.
HEAP_TEST(Strangers, growing_a_lone_last_block_copies_nothing) {
  void* const first = heap::malloc(MiB);
  test::fill(first, MiB, 1);
  for (size_t size = 2 * MiB; size <= 64 * MiB; size *= 2) {
    ASSERT_EQ(heap::realloc(first, size), first) << size;
  }
  EXPECT_TRUE(test::filled(first, MiB, 1));
  EXPECT_LE(fake_os::bytes_taken(), 64 * MiB * 17 / 16 + 4 * unit);
}

// As above in steps of a wasm page, from a size that a page might have served.
HEAP_TEST(Strangers, growing_a_lone_last_block_in_small_steps) {
  char* block = static_cast<char*>(heap::malloc(2000));
  size_t moves = 0;
  for (size_t size = 2000; size <= 8 * MiB; size += 40 * KiB) {
    char* const now = static_cast<char*>(heap::realloc(block, size));
    moves += now != block;
    block = now;
  }
  EXPECT_EQ(moves, 0u);
  EXPECT_LE(fake_os::bytes_taken(), 8 * MiB * 17 / 16 + 4 * unit);
}

// Row 13, counted at the OS: refused calls too.
HEAP_TEST(Strangers, row_13_calls_to_64_MiB) {
  for (size_t i = 0; i < 64 * KiB; ++i) ASSERT_NE(heap::malloc(KiB), nullptr);
  EXPECT_LE(fake_os::grow_calls(), 95u);
}

// Catches a first malloc that takes more than two wasm pages. Row 50 and "done" 4.
HEAP_TEST(Strangers, first_malloc_takes_at_most_two_units) {
  ASSERT_NE(heap::malloc(10), nullptr);
  EXPECT_LE(fake_os::size(), 2 * unit);
}

void use_linker_heap(const fake_os::Setup& setup) {
  fake_os::set_up(setup);
  std::vector<Block> blocks;
  for (int i = 0; i < 200; ++i) {
    size_t const size = i % 20 == 0 ? 9000 : 40 + static_cast<size_t>(i);
    void* const block = heap::calloc(1, size);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(test::is_aligned(block, test::alignment));
    ASSERT_TRUE(test::all_zero(block, size));
    ASSERT_GE(test::address(block), fake_os::base() + setup.initial_offset);
    test::fill(block, size, test::address(block));
    blocks.push_back({block, size});
  }
  ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  EXPECT_TRUE(fake_os::strangers_intact());
  check_and_free(blocks);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches a linker's heap that begins off the granule or the grow unit, or is not used first.
HEAP_TEST(Strangers, linker_heap_with_odd_begin) {
  use_linker_heap({.initial_offset = 0x1234 + 4, .initial_bytes = 3 * unit - 0x1238});
  EXPECT_EQ(fake_os::grow_calls(), 0u);
}

// Catches a linker's heap that is too small for anything.
HEAP_TEST(Strangers, linker_heap_of_a_few_bytes) {
  for (size_t bytes : {size_t{8}, size_t{16}, size_t{24}, size_t{32}, size_t{64}, size_t{4096}}) {
    EXPECT_EQ(test::end_of([&] {
                use_linker_heap({.initial_offset = unit - bytes, .initial_bytes = bytes});
                if (testing::Test::HasFailure()) _exit(1);
              }).exit_code,
              0)
        << bytes;
  }
}

// Catches calloc that believes in a linker's heap full of zeros, as it is not after a snapshot.
HEAP_TEST(Strangers, dirty_linker_heap) {
  use_linker_heap({.initial_offset = 48, .initial_bytes = 4 * unit - 48, .initial_dirty = true});
}

// Catches a linker's heap that is not joined with the memory grown right behind it.
HEAP_TEST(Strangers, linker_heap_is_joined_with_the_first_grow) {
  fake_os::set_up({.initial_offset = 0, .initial_bytes = 16 * unit});
  (void)ashlar_set_growth(0);
  void* const block = heap::malloc(24 * unit);
  ASSERT_NE(block, nullptr);
  EXPECT_LE(fake_os::size(), 26 * unit);
}

}  // namespace
