// Misuse ends the program with one line that names the fault: the contract's own texts, in every
// state that a block can be in. `bare` checks nothing and promises nothing.
#include "profile.h"

#if TEST_CHECKS_MISUSE

#include <ashlar.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support.h"
#ifdef ASHLAR_FAKE_OS
#include "fake_os/fake_os.h"
#endif

namespace {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;

enum Fault { double_free = 1, interior, foreign, never_allocated, corrupted_header };

std::string line_of(Fault fault, uintptr_t address) {
  static const char* const words[] = {"",
                                      "double free of",
                                      "interior pointer",
                                      "foreign pointer",
                                      "never allocated",
                                      "corrupted header at"};
  char line[100];
  if (TEST_NUMERIC_MESSAGES) {
    snprintf(line, sizeof line, "ashlar: %d 0x%zx", fault, static_cast<size_t>(address));
  } else {
    snprintf(line, sizeof line, "ashlar: %s 0x%zx", words[fault], static_cast<size_t>(address));
  }
  return line;
}

using Faults = std::vector<Fault>;

struct Operation {
  const char* name;
  void (*run)(void* block);
};
void run_free(void* block) { ashlar_free(block); }
void run_realloc(void* block) { (void)ashlar_realloc(block, 3000); }
void run_usable_size(void* block) { (void)ashlar_usable_size(block); }
constexpr Operation operations[] = {
    {"free", run_free}, {"realloc", run_realloc}, {"usable_size", run_usable_size}};

// `prepare` and then the operation on `address` end the child by SIGABRT, after one line on
// standard error, one of those that `faults` allow, which ashlar_last_message() holds too.
void expect_death(
    const std::string& what, const Faults& faults, uintptr_t address,
    const std::function<void()>& prepare = [] {}) {
  for (const Operation& operation : operations) {
    test::Ending const ending = test::end_of([&] {
      prepare();
      operation.run(test::at(address));
    });
    EXPECT_EQ(ending.signal, SIGABRT)
        << what << ", " << operation.name << " of " << std::hex << address << ": exit code "
        << ending.exit_code << ", wrote \"" << ending.error_output << "\"";
    if (ending.signal != SIGABRT) continue;
    bool allowed = false;
    for (Fault fault : faults) {
      std::string const line = line_of(fault, address);
      allowed = allowed || ending.error_output == line + "\nlast message: " + line + "\n";
    }
    EXPECT_TRUE(allowed) << what << ", " << operation.name << " of " << std::hex << address
                         << " wrote:\n"
                         << ending.error_output << "first allowed: " << line_of(faults[0], address);
  }
}

// Addresses that no allocator may take for its own, and most of which it must not even read.
struct Foreign {
  std::string name;
  uintptr_t address;
};

char static_bytes[64];

std::vector<Foreign> foreign_addresses() {
  static char* const mapped = static_cast<char*>(
      mmap(nullptr, 64 * KiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  static char* const unreadable =
      static_cast<char*>(mmap(nullptr, 64 * KiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  static void* const others = ::malloc(64);
  static void* const others_large = ::malloc(MiB);
  std::vector<Foreign> list = {
      {"mmap", test::address(mapped)},
      {"mmap + 16", test::address(mapped + 16)},
      {"mmap + 4104", test::address(mapped + 4104)},
      {"unreadable memory", test::address(unreadable + 4096)},
      {"unreadable memory, odd", test::address(unreadable + 4099)},
      {"another allocator's", test::address(others)},
      {"another allocator's, large", test::address(others_large)},
      {"stack", reinterpret_cast<uintptr_t>(__builtin_frame_address(0))},
      {"static", test::address(static_bytes + 16)},
      {"function", reinterpret_cast<uintptr_t>(&foreign_addresses)},
      {"Ashlar's static data", test::address(ashlar_last_message())},
      {"end of memory", UINTPTR_MAX},
      {"end of memory - 15", UINTPTR_MAX - 15},
      {"end of memory - 4095", UINTPTR_MAX - 4095},
  };
  for (uintptr_t low : {1, 2, 8, 16, 64, 4095, 4096}) list.push_back({"null-adjacent", low});
#if UINTPTR_MAX > UINT32_MAX
  for (unsigned bit : {46u, 47u, 48u, 63u}) {
    list.push_back({"far", uintptr_t{1} << bit});
    list.push_back({"far - 16", (uintptr_t{1} << bit) - 16});
  }
#endif
#ifdef ASHLAR_FAKE_OS
  list.push_back({"memory that nobody grew", fake_os::base() + fake_os::size() + 64});
  list.push_back({"end of the reservation", fake_os::base() + fake_os::reserved() - 16});
#endif
  return list;
}

// One block in one state, and everything that can be done wrong to it.
struct Subject {
  std::string state;
  char* block;
  bool has_neighbours;  // its freed place can't be joined with anything
};

void expect_all_misuse_caught(const Subject& subject) {
  size_t const usable = ashlar_usable_size(subject.block);
  uintptr_t const block = test::address(subject.block);
  ASSERT_NE(block, 0u);

  Faults const freed = subject.has_neighbours ? Faults{double_free} : Faults{double_free, interior};
  expect_death(subject.state + ": double free", freed, block, [&] { ashlar_free(subject.block); });
  expect_death(subject.state + ": double free, others freed and allocated meanwhile",
               Faults{double_free, interior}, block, [&] {
                 ashlar_free(subject.block);
                 for (size_t size : {usable / 2 + 1, usable * 2, usable * 10}) {
                   void* const first = ashlar_malloc(size);
                   void* const second = ashlar_malloc(size);
                   ashlar_free(first);
                   ashlar_free(second);
                 }
               });

  std::set<size_t> offsets = {1,
                              2,
                              4,
                              8,
                              16,
                              test::alignment,
                              usable / 2,
                              usable / 2 / test::alignment * test::alignment,
                              usable - test::alignment,
                              usable - 1};
  for (size_t offset : {4 * KiB, 64 * KiB, 4 * MiB}) offsets.insert(offset);
  for (size_t offset : offsets) {
    if (offset == 0 || offset >= usable) continue;
    expect_death(subject.state + ": interior + " + std::to_string(offset), {interior},
                 block + offset);
  }

  static bool first = true;
  if (test::sanitized && !first) return;  // forks are slow there
  first = false;
  for (const Foreign& each : foreign_addresses()) {
    expect_death(subject.state + ": " + each.name, {foreign}, each.address);
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Enough blocks of one size that their class has pages, several of them full.
std::vector<char*> many(size_t size) {
  std::vector<char*> blocks(std::max(size_t{1500}, 256 * KiB / size));
  for (char*& block : blocks) {
    block = static_cast<char*>(ashlar_malloc(size));
    EXPECT_NE(block, nullptr);
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

void for_sizes(std::initializer_list<size_t> sizes, const std::function<void(size_t)>& body) {
  for (size_t size : sizes) test::run_in_child([&] { body(size); });
}
constexpr std::initializer_list<size_t> small_sizes = {1, 24, 48, 256, 1000};

// Catches a test that relies on a neighbour, or on a page that is given back with its last block.
TEST(Misuse, block_alone_in_its_page) {
  for_sizes(small_sizes, [](size_t size) {
    std::vector<char*> const blocks = many(size);
    char* const kept = blocks[blocks.size() / 2];
    for (char* block : blocks) {
      if (block != kept) ashlar_free(block);
    }
    expect_all_misuse_caught({"alone, " + std::to_string(size), kept, false});
  });
}

// Catches tests that only work on full or on empty pages.
TEST(Misuse, block_with_live_neighbours) {
  for_sizes(small_sizes, [](size_t size) {
    std::vector<char*> const blocks = many(size);
    size_t const middle = blocks.size() / 2;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i % 3 == 0 && i + 1 != middle && i != middle && i != middle + 1) ashlar_free(blocks[i]);
    }
    expect_all_misuse_caught({"neighbours, " + std::to_string(size), blocks[middle], true});
  });
}

// Catches tests that read the free list's head: in a full page there is none.
TEST(Misuse, block_in_a_full_page) {
  for_sizes(small_sizes, [](size_t size) {
    std::vector<char*> const blocks = many(size);
    expect_all_misuse_caught(
        {"full page, " + std::to_string(size), blocks[blocks.size() / 2], true});
  });
}

// Catches a realloc that leaves the new place unmarked, or its old place looking alive.
TEST(Misuse, block_after_a_realloc) {
  for_sizes(small_sizes, [](size_t size) {
    std::vector<char*> const blocks = many(size);
    char* const from_smaller = static_cast<char*>(ashlar_realloc(ashlar_malloc(1), size));
    expect_all_misuse_caught({"after growing, " + std::to_string(size), from_smaller, false});
    char* const from_larger = static_cast<char*>(ashlar_realloc(ashlar_malloc(size + 3000), size));
    expect_all_misuse_caught({"after shrinking, " + std::to_string(size), from_larger, false});

    char* const moved = blocks[blocks.size() / 2];
    size_t const larger = ashlar_usable_size(moved) * 5 + 5000;
    ASSERT_NE(ashlar_realloc(moved, larger), nullptr);
    expect_death("old place of a moved block, " + std::to_string(size), {double_free, interior},
                 test::address(moved));
  });
}

// Catches blocks of a class without a page yet: they lie in the arena and have another shape.
TEST(Misuse, first_blocks_of_their_class) {
  for_sizes(small_sizes, [](size_t size) {
    char* const alone = static_cast<char*>(ashlar_malloc(size));
    expect_all_misuse_caught({"first block, " + std::to_string(size), alone, false});
    char* const second = static_cast<char*>(ashlar_malloc(size));
    ASSERT_NE(ashlar_malloc(size), nullptr);
    expect_all_misuse_caught({"second block, " + std::to_string(size), second, true});
  });
}

// Catches large blocks: their middle lies whole tiles and map leaves away from any header.
TEST(Misuse, large_blocks) {
  for_sizes({1100, 5000, 70000, 5 * MiB, 20 * MiB}, [](size_t size) {
    char* const alone = static_cast<char*>(ashlar_malloc(size));
    expect_all_misuse_caught({"large, alone, " + std::to_string(size), alone, false});
    char* const block = static_cast<char*>(ashlar_malloc(size));
    ASSERT_NE(ashlar_malloc(size), nullptr);
    expect_all_misuse_caught({"large, neighbours, " + std::to_string(size), block, true});
    char* const grown = static_cast<char*>(ashlar_realloc(ashlar_malloc(100), size));
    expect_all_misuse_caught({"large, grown, " + std::to_string(size), grown, false});
    char* const shrunk = static_cast<char*>(ashlar_realloc(ashlar_malloc(size * 2), size));
    expect_all_misuse_caught({"large, shrunk, " + std::to_string(size), shrunk, false});
    expect_death("cut off by shrinking", {interior, double_free, never_allocated},
                 test::address(shrunk) + size + size / 2 / 16 * 16);
  });
}

// Catches aligned blocks: the gap before them is a free block.
TEST(Misuse, aligned_blocks) {
  for_sizes({48, 1000, 70000}, [](size_t size) {
    for (size_t alignment : {size_t{64}, 4 * KiB, 64 * KiB}) {
      (void)ashlar_malloc(200);
      char* const block = static_cast<char*>(ashlar_aligned_alloc(alignment, size));
      expect_all_misuse_caught({"aligned " + std::to_string(alignment), block, false});
    }
  });
}

// Catches old addresses in a page that went back to the arena, or now belongs to another class.
TEST(Misuse, page_emptied_and_used_again) {
  for_sizes({24, 48, 1000}, [](size_t size) {
    std::vector<char*> const blocks = many(size);
    for (char* block : blocks) ashlar_free(block);
    for (size_t i = 0; i < blocks.size(); i += blocks.size() / 8) {
      expect_death("emptied page", {double_free, interior}, test::address(blocks[i]));
    }
    std::set<char*> live;
    for (size_t other : {size_t{80}, size_t{400}, size_t{3000}}) {
      for (int i = 0; i < 300; ++i) live.insert(static_cast<char*>(ashlar_malloc(other)));
    }
    for (size_t i = 0, tried = 0; i < blocks.size() && tried < 12; i += 37) {
      if (live.count(blocks[i]) != 0) continue;
      ++tried;
      expect_death("page of another class", {double_free, interior, never_allocated, foreign},
                   test::address(blocks[i]));
    }
    for (char* block : live) ASSERT_GE(ashlar_usable_size(block), 80u);
  });
}

// Catches a freed block that was joined into a larger free block, or is covered by a live one.
HEAP_TEST(Misuse, memory_coalesced) {
  char* blocks[5];
  for (char*& block : blocks) block = static_cast<char*>(ashlar_malloc(3000));
  for (int i = 1; i < 4; ++i) ashlar_free(blocks[i]);
  for (int i = 1; i < 4; ++i) {
    expect_death("joined", {double_free, interior}, test::address(blocks[i]));
  }
  char* const covering = static_cast<char*>(ashlar_malloc(9000));
  ASSERT_EQ(covering, blocks[1]) << "the hole that fits was not used";
  for (int i = 2; i < 4; ++i) expect_death("covered", {interior}, test::address(blocks[i]));
  // A program that writes to its block can't make an old address look alive.
  memset(covering, 0, 9000);
  for (int i = 2; i < 4; ++i)
    expect_death("covered by zeros", {interior}, test::address(blocks[i]));
  memset(covering, 0xFF, 9000);
  for (int i = 2; i < 4; ++i) expect_death("covered by ones", {interior}, test::address(blocks[i]));
}

// Catches believing a header-like word that a program wrote inside its own block.
HEAP_TEST(Misuse, forged_header_inside_a_block) {
  char* const real = static_cast<char*>(ashlar_malloc(2000));
  char* const block = static_cast<char*>(ashlar_malloc(20000));
  ASSERT_NE(ashlar_malloc(2000), nullptr);
  for (size_t at = 0; at + 64 < 20000; at += 16) memcpy(block + at, real - 16, 32);
  for (size_t offset : {size_t{16}, size_t{32}, size_t{4096}, size_t{10000}, size_t{19840}}) {
    expect_death("forged header", {interior}, test::address(block) + offset);
  }
}

// Row 99. Catches a double free that is only looked for at the head of the free list.
HEAP_TEST(Misuse, double_free_with_others_in_between) {
  std::vector<char*> const blocks = many(64);
  for (size_t i = 10; i < 20; ++i) ashlar_free(blocks[i]);
  for (size_t i = 10; i < 20; ++i) {
    expect_death("one of many", {double_free}, test::address(blocks[i]));
  }
}

#if TEST_PROFILE != TEST_PROFILE_small

// Catches a place in a page that is a block's start, but was never handed out.
TEST(Misuse, never_handed_out) {
  for_sizes({16, 48, 256}, [](size_t size) {
    std::vector<char*> const blocks = many(size);
    // Allocates on until the newest block has room behind it, in its own tile, that nobody had. A
    // place far enough behind was not even prepared yet.
    std::set<char*> all(blocks.begin(), blocks.end());
    uintptr_t place = 0;
    for (int i = 0; i < 5000 && place == 0; ++i) {
      char* const block = static_cast<char*>(ashlar_malloc(size));
      all.insert(block);
      size_t const step = ashlar_usable_size(block);
      uintptr_t const behind = test::address(block) + (2500 / step + 1) * step;
      bool const in_page = all.count(block - step) != 0 && all.count(block - 2 * step) != 0;
      bool const same_tile = (behind + step) / 4096 == test::address(block) / 4096;
      bool const newest =
          all.upper_bound(block) == all.end() || *all.upper_bound(block) > test::at(behind);
      if (in_page && same_tile && newest) place = behind;
    }
    ASSERT_NE(place, 0u) << "no such place was found";
    expect_death("never handed out", {never_allocated}, place);
    expect_death("inside such a place", {interior, never_allocated}, place + 8);
    // Handed out, it is a block like any other.
    for (int i = 0; i < 5000 && all.count(reinterpret_cast<char*>(place)) == 0; ++i) {
      all.insert(static_cast<char*>(ashlar_malloc(size)));
    }
    ASSERT_EQ(all.count(reinterpret_cast<char*>(place)), 1u);
    ashlar_free(test::at(place));
    expect_death("handed out and freed", {double_free}, place);
  });
}

#endif

// Catches a false alarm: a live block may hold whatever a freed one held, the mark of it included.
HEAP_TEST(Misuse, live_block_that_looks_freed_is_no_fault) {
  size_t came_back = 0;
  for (size_t size : {size_t{16}, size_t{48}, size_t{500}, size_t{5000}}) {
    std::vector<char*> blocks = many(size);
    char contents[2 * sizeof(void*)];  // where links and marks stand
    for (size_t i = 0; i < blocks.size(); i += 2) {
      char* const block = blocks[i];
      ashlar_free(block);
      memcpy(contents, block, sizeof contents);
      // The freed block comes back at once or a little later; then it gets the same bytes again.
      std::vector<char*> others;
      char* again = nullptr;
      for (int tries = 0; tries < 100 && again != block; ++tries) {
        again = static_cast<char*>(ashlar_malloc(size));
        if (again != block) others.push_back(again);
      }
      if (again == block) {
        ++came_back;
        memcpy(again, contents, sizeof contents);
        ASSERT_GE(ashlar_usable_size(again), size);
        blocks[i] = static_cast<char*>(ashlar_realloc(again, size + 1));
        ASSERT_NE(blocks[i], nullptr);
        ASSERT_EQ(memcmp(blocks[i], contents, sizeof contents), 0);
      } else {
        blocks[i] = others.back();
        others.pop_back();
      }
      for (char* other : others) ashlar_free(other);
    }
    for (char* block : blocks) {
      memcpy(block, contents, sizeof contents);
      ashlar_free(block);
    }
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
  }
  EXPECT_GT(came_back, 1000u) << "too few blocks came back to mean anything";
}

// Catches anything that the cases above did not think of: in a heap full of random blocks, every
// address that is not a live block's is refused, and every one that is, is served.
HEAP_TEST(Misuse, any_address_of_the_heap) {
  test::Random random(test::printed_seed());
  std::vector<char*> live;
  uintptr_t low = UINTPTR_MAX, high = 0;
  std::vector<uintptr_t> freed;
  for (int i = 0; i < 30000; ++i) {
    if (!live.empty() && random.below(100) < 45) {
      std::swap(live[random.below(live.size())], live.back());
      freed.push_back(test::address(live.back()));
      ashlar_free(live.back());
      live.pop_back();
      continue;
    }
    size_t const size = random.one_in(50) ? random.between(1000, 100000)
                                          : random.between(1, size_t{8} << random.between(0, 7));
    live.push_back(static_cast<char*>(ashlar_malloc(size)));
    low = std::min(low, test::address(live.back()));
    high = std::max(high, test::address(live.back()) + size);
  }
  std::set<uintptr_t> starts;
  for (char* block : live) {
    starts.insert(test::address(block));
    ASSERT_NE(ashlar_usable_size(block), 0u);
  }
  Faults const any = {double_free, interior, never_allocated, foreign};
  for (int i = 0; i < (test::sanitized ? 60 : 300); ++i) {
    uintptr_t address = low + random.below(high - low);
    if (i % 3 != 0) address = address / test::alignment * test::alignment;
    if (i % 3 == 2) address = freed[random.below(freed.size())];
    if (starts.count(address) == 0) expect_death("any address", any, address);
  }
}

// Catches a message that the next call or a mere question changes, and text before any fault.
HEAP_TEST(Misuse, last_message_is_empty_without_a_fault) {
  EXPECT_STREQ(ashlar_last_message(), "");
  ashlar_free(ashlar_malloc(10));
  EXPECT_EQ(ashlar_malloc(SIZE_MAX - test::opaque(size_t{1})), nullptr);
  EXPECT_EQ(ashlar_check(), 0);
  EXPECT_STREQ(ashlar_last_message(), "");
}

#ifdef ASHLAR_FAKE_OS

// Catches a neighbour's memory that is taken for ours because it lies between two pieces of ours.
HEAP_TEST(Misuse, strangers_memory_is_foreign) {
  ASSERT_NE(ashlar_malloc(100000), nullptr);
  uintptr_t const first = fake_os::base() + fake_os::size();
  ASSERT_TRUE(fake_os::stranger_grow(3));
  ASSERT_NE(ashlar_malloc(100000), nullptr);
  uintptr_t const second = fake_os::base() + fake_os::size();
  ASSERT_TRUE(fake_os::stranger_grow(100));
  ASSERT_NE(ashlar_malloc(6 * MiB), nullptr);
  for (uintptr_t address : {first, first + 16, first + 64 * KiB, first + 3 * 64 * KiB - 16, second,
                            second + 4096, second + 50 * 64 * KiB, second + 100 * 64 * KiB - 16}) {
    expect_death("stranger's", {foreign}, address);
  }
  EXPECT_TRUE(fake_os::strangers_intact());
}

// Catches reading a stranger's memory to find out, where it looks like a block of ours.
HEAP_TEST(Misuse, strangers_copy_of_a_block_is_foreign) {
  char* const block = static_cast<char*>(ashlar_malloc(5000));
  uintptr_t const there = fake_os::base() + fake_os::size();
  ASSERT_TRUE(fake_os::stranger_grow(1));
  ASSERT_NE(ashlar_malloc(200000), nullptr);
  for (size_t at = 0; at + 64 < 64 * KiB; at += 16) {
    memcpy(reinterpret_cast<char*>(there + at), block - 16, 32);
  }
  expect_death("copy of a header", {foreign}, there + 4096 + 16);
  expect_death("copy of a header", {foreign}, there + 16);
}

// Catches the linker's heap taken from its page's or unit's begin instead of its own.
HEAP_TEST(Misuse, below_the_linker_heap_is_foreign) {
  fake_os::set_up({.initial_offset = 0x2340, .initial_bytes = 4 * 64 * KiB - 0x2340});
  ASSERT_NE(ashlar_malloc(100), nullptr);
  for (uintptr_t offset : {0x10, 0x1000, 0x2000, 0x2320}) {
    expect_death("the program's data", {foreign}, fake_os::base() + offset);
  }
}

#endif

}  // namespace

#endif  // TEST_CHECKS_MISUSE
