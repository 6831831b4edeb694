// What malloc and its family promise, on every target: issue "Semantics". Runs on the core's names
// and, with ASHLAR_PLAIN_NAMES, on the C names of the override archive.
#include <errno.h>
#include <string.h>

#include <set>
#include <vector>

#include "names.h"
#include "profile.h"
#include "support.h"
#ifdef ASHLAR_FAKE_OS
#include "fake_os/fake_os.h"
#endif

namespace {

using test::opaque;

// Small, medium and large ones, and the neighbours of every power of two and of typical limits.
std::vector<size_t> interesting_sizes(size_t most) {
  std::set<size_t> sizes;
  for (size_t size = 0; size <= 1200 && size <= most; ++size) sizes.insert(size);
  for (size_t power = 1024; power <= most; power *= 2) {
    for (size_t near : {power - 17, power - 16, power - 8, power - 1, power, power + 1, power + 16,
                        power + power / 2}) {
      if (near <= most) sizes.insert(near);
    }
  }
  return {sizes.begin(), sizes.end()};
}

// Catches a null, shared or unfreeable result for size 0.
HEAP_TEST(Semantics, malloc_zero_is_unique) {
  std::set<void*> blocks;
  for (int i = 0; i < 1000; ++i) {
    void* const block = heap::malloc(0);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(blocks.insert(block).second);
  }
  for (void* block : {heap::calloc(0, 8), heap::calloc(8, 0), heap::realloc(nullptr, 0),
                      heap::aligned_alloc(64, 0)}) {
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(blocks.insert(block).second);
  }
  for (void* block : blocks) heap::free(block);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

std::vector<size_t> impossible_sizes() {
  std::vector<size_t> sizes;
  for (size_t k = 0; k <= 64; ++k) {
    sizes.push_back(SIZE_MAX - k);
    sizes.push_back(static_cast<size_t>(PTRDIFF_MAX) + k);
  }
  for (size_t k : {4096, 65535, 65536, 65537, 1 << 20}) {
    sizes.push_back(SIZE_MAX - k);
    sizes.push_back(static_cast<size_t>(PTRDIFF_MAX) + k);
  }
  return sizes;
}

// Catches a size that wraps when the header, the alignment or a grow unit is added. Rows 26, 35.
HEAP_TEST(Semantics, sizes_from_ptrdiff_max_up_are_refused) {
  void* const kept = heap::malloc(100);
  memset(kept, 7, 100);
  for (size_t size : impossible_sizes()) {
    errno = 0;
    ASSERT_EQ(heap::malloc(opaque(size)), nullptr) << size;
    ASSERT_EQ(errno, ENOMEM) << size;
    errno = 0;
    ASSERT_EQ(heap::calloc(opaque(size), 1), nullptr) << size;
    ASSERT_EQ(errno, ENOMEM) << size;
    errno = 0;
    ASSERT_EQ(heap::realloc(nullptr, opaque(size)), nullptr) << size;
    ASSERT_EQ(errno, ENOMEM) << size;
    errno = 0;
    ASSERT_EQ(heap::realloc(kept, opaque(size)), nullptr) << size;
    ASSERT_EQ(errno, ENOMEM) << size;
    for (size_t alignment : {size_t{1}, size_t{16}, size_t{4096}, size_t{1} << 22}) {
      errno = 0;
      ASSERT_EQ(heap::aligned_alloc(alignment, opaque(size)), nullptr) << size << " " << alignment;
      ASSERT_EQ(errno, ENOMEM) << size << " " << alignment;
    }
  }
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(static_cast<char*>(kept)[i], 7);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches calloc that multiplies without looking, or refuses without errno. Rows 31, 32, 33.
HEAP_TEST(Semantics, calloc_overflow_is_refused) {
  constexpr size_t half_bits = size_t{1} << (sizeof(size_t) * 4);
  const size_t pairs[][2] = {
      {half_bits, half_bits}, {half_bits + 1, half_bits}, {SIZE_MAX / 2, 4},
      {4, SIZE_MAX / 2},      {SIZE_MAX / 2 + 1, 2},      {SIZE_MAX, SIZE_MAX},
      {SIZE_MAX, 2},          {SIZE_MAX / 3 + 1, 3},      {half_bits - 1, half_bits + 2},
      {SIZE_MAX / 24 + 1, 24}};
  for (auto& pair : pairs) {
    errno = 0;
    ASSERT_EQ(heap::calloc(opaque(pair[0]), opaque(pair[1])), nullptr) << pair[0] << " " << pair[1];
    ASSERT_EQ(errno, ENOMEM) << pair[0] << " " << pair[1];
  }
}

// Catches a class, a header or a realloc path that gives less than max_align_t. Rows 42, 43, 44.
HEAP_TEST(Semantics, every_block_has_the_target_alignment) {
  for (size_t size : interesting_sizes(1 << 20)) {
    void* const plain = heap::malloc(size);
    void* const zeroed = heap::calloc(size, 1);
    void* const resized = heap::realloc(heap::malloc(8), size);
    for (void* block : {plain, zeroed, resized}) {
      ASSERT_NE(block, nullptr) << size;
      ASSERT_TRUE(test::is_aligned(block, test::alignment)) << size << " " << block;
    }
    heap::free(plain);
    heap::free(zeroed);
    if (size % 3 != 0) heap::free(resized);
  }
}

// Catches refusing a size that is no multiple of the alignment, large alignments that are ignored,
// and aligned blocks whose tail or usable size runs into the next. Rows 45, 49, 51.
HEAP_TEST(Semantics, aligned_alloc_takes_any_size) {
  void* const small = heap::aligned_alloc(16, 24);
  ASSERT_NE(small, nullptr);
  EXPECT_TRUE(test::is_aligned(small, 16));
  struct Block {
    void* at;
    size_t size;
  };
  std::vector<Block> blocks;
  for (size_t alignment = 1; alignment <= size_t{4} << 20; alignment *= 2) {
    for (size_t size : {size_t{0}, size_t{1}, size_t{24}, alignment - 1, alignment, alignment + 1,
                        alignment * 3 / 2}) {
      void* const block = heap::aligned_alloc(alignment, size);
      ASSERT_NE(block, nullptr) << alignment << " " << size;
      ASSERT_TRUE(test::is_aligned(block, alignment)) << alignment << " " << size << " " << block;
      size_t const usable = heap::usable_size(block);
      ASSERT_GE(usable, size);
      test::fill(block, usable, test::address(block));
      blocks.push_back({block, usable});
    }
    if (alignment > 65536) {
      for (size_t i = 0; i < 5; ++i) {
        ASSERT_TRUE(
            test::filled(blocks.back().at, blocks.back().size, test::address(blocks.back().at)));
        heap::free(blocks.back().at);
        blocks.pop_back();
      }
    }
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  for (const Block& block : blocks) {
    ASSERT_TRUE(test::filled(block.at, block.size, test::address(block.at)));
    heap::free(block.at);
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches an alignment that is taken for valid because a bit trick misses it, or the wrong errno.
HEAP_TEST(Semantics, aligned_alloc_refuses_what_is_no_power_of_two) {
  for (size_t alignment : {size_t{0}, size_t{3}, size_t{6}, size_t{24}, size_t{48}, size_t{4097},
                           SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 2}) {
    errno = 0;
    ASSERT_EQ(heap::aligned_alloc(opaque(alignment), 64), nullptr) << alignment;
    ASSERT_EQ(errno, EINVAL) << alignment;
  }
  // Powers of two that no address space has room for.
  for (size_t alignment : {SIZE_MAX / 2 + 1, SIZE_MAX / 4 + 1}) {
    for (size_t size : {size_t{1}, alignment, SIZE_MAX / 2}) {
      if (alignment == SIZE_MAX / 4 + 1 && sizeof(void*) == 4) continue;  // 1 GiB may be there
      errno = 0;
      ASSERT_EQ(heap::aligned_alloc(opaque(alignment), opaque(size)), nullptr)
          << alignment << " " << size;
      ASSERT_EQ(errno, ENOMEM) << alignment << " " << size;
    }
  }
}

// Catches a refused realloc that frees, moves or shortens the block first.
HEAP_TEST(Semantics, refused_realloc_leaves_the_block) {
  std::vector<void*> blocks;
  const size_t sizes[] = {1, 16, 100, 1000, 1100, 5000, 70000, 3 << 20};
  for (size_t size : sizes) {
    void* const block = heap::malloc(size);
    ASSERT_NE(block, nullptr);
    test::fill(block, size, size);
    blocks.push_back(block);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    size_t const usable = heap::usable_size(blocks[i]);
    for (size_t refused : {SIZE_MAX, SIZE_MAX - 8, SIZE_MAX - 65536, SIZE_MAX / 2 + 1}) {
      ASSERT_EQ(heap::realloc(blocks[i], opaque(refused)), nullptr);
      ASSERT_EQ(heap::usable_size(blocks[i]), usable);
      ASSERT_TRUE(test::filled(blocks[i], sizes[i], sizes[i])) << sizes[i];
    }
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
  for (void* block : blocks) heap::free(block);
}

// Catches a realloc that moves when nothing has to change.
HEAP_TEST(Semantics, realloc_to_the_same_size_keeps_the_block) {
  for (int round = 0; round < 2; ++round) {  // the second finds hot classes where there are pages
    for (size_t size : interesting_sizes(1 << 20)) {
      void* const block = heap::malloc(size);
      ASSERT_NE(block, nullptr);
      ASSERT_EQ(heap::realloc(block, size), block) << size;
      size_t const usable = heap::usable_size(block);
      ASSERT_EQ(heap::realloc(block, usable), block) << size << " " << usable;
      ASSERT_EQ(heap::usable_size(block), usable) << size;
      if (size % 2 == 0) heap::free(block);
    }
  }
}

// Catches contents lost by any pair of sizes: in place, moved, between pages and arena. Row 89.
HEAP_TEST(Semantics, realloc_keeps_the_contents) {
  const size_t sizes[] = {1,    7,    8,    16,   24,    100,   500,   1000,   1024,
                          1025, 2000, 4096, 5000, 10000, 65536, 66000, 300000, 1 << 20};
  for (size_t from : sizes) {
    for (size_t to : sizes) {
      void* block = heap::malloc(from);
      void* const neighbour = heap::malloc(from);
      test::fill(block, from, from + 1);
      test::fill(neighbour, from, 3);
      block = heap::realloc(block, to);
      ASSERT_NE(block, nullptr);
      ASSERT_GE(heap::usable_size(block), to);
      // fill() makes a prefix of the longer pattern only up to whole words.
      size_t const kept = (from < to ? from : to) / 8 * 8;
      ASSERT_TRUE(test::filled(block, kept, from + 1)) << from << " -> " << to;
      ASSERT_TRUE(test::filled(neighbour, from, 3)) << from << " -> " << to;
      heap::free(block);
      if (to % 2 == 0) heap::free(neighbour);
    }
  }
  char* block = static_cast<char*>(heap::malloc(1));
  *block = 42;
  for (unsigned i = 0; i < 22; ++i) {
    block = static_cast<char*>(heap::realloc(block, size_t{1} << i));
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(*block, 42) << i;
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches realloc(p, 0) that frees: its caller would free it again. Row 88.
HEAP_TEST(Semantics, realloc_to_zero_never_frees) {
  for (size_t size : {1, 16, 500, 5000, 100000}) {
    void* const block = heap::realloc(heap::malloc(size), opaque(size_t{0}));
    ASSERT_NE(block, nullptr) << size;
    heap::free(block);
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches a usable size that reaches into a header, a free link or a neighbour.
HEAP_TEST(Semantics, all_usable_bytes_are_the_callers) {
  struct Block {
    void* at;
    size_t usable;
  };
  std::vector<Block> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t size : interesting_sizes(300000)) {
      void* const block = heap::malloc(size);
      ASSERT_NE(block, nullptr);
      size_t const usable = heap::usable_size(block);
      ASSERT_GE(usable, size);
      memset(block, 0xFF, usable);
      test::fill(block, usable, test::address(block));
      blocks.push_back({block, usable});
    }
    // Frees in between write the links and sizes of free blocks.
    for (size_t i = static_cast<size_t>(round); i < blocks.size(); i += 3) {
      ASSERT_TRUE(test::filled(blocks[i].at, blocks[i].usable, test::address(blocks[i].at)));
      heap::free(blocks[i].at);
      blocks[i] = blocks.back();
      blocks.pop_back();
    }
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  }
  for (const Block& block : blocks) {
    ASSERT_EQ(heap::usable_size(block.at), block.usable);
    ASSERT_TRUE(test::filled(block.at, block.usable, test::address(block.at)));
    heap::free(block.at);
  }
  EXPECT_EQ(heap::usable_size(nullptr), 0u);
  heap::free(nullptr);
}

// Catches calloc that trusts memory which was used before.
HEAP_TEST(Semantics, calloc_is_zero_on_reused_memory) {
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks;
    for (size_t size : interesting_sizes(300000)) {
      void* const dirty = heap::malloc(size);
      memset(dirty, 0xEE, heap::usable_size(dirty));
      void* const grown = heap::realloc(dirty, size + size / 2);
      memset(grown, 0xEE, heap::usable_size(grown));
      if (size % 5 == 0)
        blocks.push_back(grown);
      else
        heap::free(grown);
      void* const block = heap::calloc(1, size);
      ASSERT_TRUE(test::all_zero(block, size)) << size;
      memset(block, 0xDD, heap::usable_size(block));
      blocks.push_back(block);
    }
    while (!blocks.empty()) {
      heap::free(blocks.back());
      blocks.pop_back();
    }
    void* const all = heap::calloc(1 << 20, 8);
    ASSERT_TRUE(test::all_zero(all, 8 << 20));
    memset(all, 0xCC, 8 << 20);
    heap::free(all);
  }
}

#ifndef ASHLAR_PLAIN_NAMES

// Catches words that the allocator keeps in free memory, such as a size at its end, and that calloc
// takes for fresh: each block takes all of the free run.
HEAP_TEST(Semantics, calloc_of_a_whole_free_run_is_zero) {
  (void)heap::malloc(100);
  size_t whole_runs = 0;
  for (size_t less = 0; less <= 64; ++less) {
    ASSERT_EQ(ashlar_reserve(100000 + less * 3000), 0);
    ashlar_stats_t before, after;
    ashlar_stats(&before);
    size_t const size = before.largest_free_bytes - less;
    void* const block = heap::calloc(1, size);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(test::all_zero(block, size)) << size;
    ashlar_stats(&after);
    whole_runs += after.committed_bytes == before.committed_bytes;
    memset(block, 0xAA, heap::usable_size(block));
    if (less % 3 != 0) heap::free(block);
  }
  EXPECT_GT(whole_runs, 20u);
}

#endif

// Row 97. Catches what only a certain order of small sizes breaks: all pairs of sizes up to 40.
HEAP_TEST(Semantics, every_order_of_small_sizes) {
  for (size_t first = 0; first <= 40; ++first) {
    for (size_t second = 0; second <= 40; ++second) {
      void* const one = heap::malloc(first);
      void* const two = heap::malloc(second);
      memset(one, 1, heap::usable_size(one));
      memset(two, 2, heap::usable_size(two));
      heap::free(one);
      void* const three = heap::malloc(first);
      memset(three, 3, heap::usable_size(three));
      ASSERT_TRUE(second == 0 || static_cast<char*>(two)[second - 1] == 2) << first << second;
      if (first % 2 == 0) heap::free(two);
      heap::free(three);
      if (first % 2 != 0) heap::free(two);
    }
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  }
}

// Catches free that leaves another errno behind, which the C standard forbids since 2024.
HEAP_TEST(Semantics, free_keeps_errno) {
  for (size_t size : {16, 1000, 100000, 64 << 20}) {
    void* const block = heap::malloc(size);
    ASSERT_NE(block, nullptr);
    errno = 1234;
    heap::free(block);
    ASSERT_EQ(errno, 1234) << size;
  }
}

// Catches a block of aligned_alloc that realloc to its own size moves, off its alignment.
HEAP_TEST(Semantics, realloc_to_the_same_size_keeps_an_aligned_block) {
  for (int round = 0; round < 400; ++round) {
    for (size_t alignment = 32; alignment <= 4096; alignment *= 2) {
      size_t const size = 1 + size_t(round) * 7 % 1500;
      void* const block = heap::aligned_alloc(alignment, size);
      ASSERT_EQ(test::address(block) % alignment, 0u);
      ASSERT_EQ(heap::realloc(block, size), block) << alignment << " " << size;
      if (round % 2 == 0) heap::free(block);
    }
  }
}

#if defined(ASHLAR_FAKE_OS)

// A heap whose next blocks of any size lie on marked fresh memory, and the first address of that.
uintptr_t mark_from_here() {
  for (int i = 0; i < 50; ++i) (void)heap::malloc(3000);
  fake_os::mark_fresh_memory(true);
  return fake_os::base() + fake_os::size();
}

void* calloc_beyond(uintptr_t boundary, size_t size) {
  for (int i = 0; i < 1000; ++i) {
    void* const block = heap::calloc(1, size);
    if (block == nullptr || test::address(block) >= boundary) return block;
  }
  return nullptr;
}

// Catches calloc that clears memory which nobody ever used: at most 64 bytes of tags. Row 93.
HEAP_TEST(Semantics, calloc_writes_little_to_fresh_memory) {
  uintptr_t const boundary = mark_from_here();
  for (size_t size :
       {size_t{2000}, size_t{5000}, size_t{70000}, size_t{300000}, size_t{64} << 20}) {
    for (int i = 0; i < 20; ++i) {
      void* const block = calloc_beyond(boundary, size);
      ASSERT_NE(block, nullptr) << size;
      ASSERT_LE(fake_os::written_bytes(block, size), 64u) << size;
      if (size > 1 << 20) break;
    }
  }
}

// Catches calloc that clears all of a block of which only the beginning was used before, or that
// forgets the part which was.
HEAP_TEST(Semantics, calloc_clears_only_what_was_used) {
  uintptr_t const boundary = mark_from_here();
  void* const used = calloc_beyond(boundary, 10000);
  ASSERT_NE(used, nullptr);
  memset(used, 0x11, 10000);
  heap::free(used);
  unsigned char* const block = static_cast<unsigned char*>(heap::calloc(1, 200000));
  ASSERT_EQ(block, used) << "the freed end of the region was not reused";
  EXPECT_TRUE(test::all_zero(block, 10000));
  EXPECT_LE(fake_os::written_bytes(block, 200000), 10000u + 64u);
}

// Catches calloc that touches the OS pages of a large fresh block.
HEAP_TEST(Semantics, calloc_touches_few_pages_of_fresh_memory) {
  char* const block = static_cast<char*>(heap::calloc(64, 1 << 20));
  ASSERT_NE(block, nullptr);
  EXPECT_LE(fake_os::touched_bytes(test::address(block), 64 << 20), 4u * 4096);
  EXPECT_TRUE(test::all_zero(block, 64 << 20));
}

#endif

}  // namespace
