// A million random operations against a shadow model, from a printed seed.
#include <ashlar.h>
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <vector>

#include "names.h"
#include "profile.h"
#include "support.h"
#ifdef ASHLAR_FAKE_OS
#include "fake_os/fake_os.h"
#endif

namespace {

constexpr size_t KiB = 1024;
constexpr size_t MiB = 1024 * KiB;

#ifdef ASHLAR_FAKE_OS
// Several shapes of linear memory share the million there.
constexpr unsigned operation_count = test::sanitized ? 60000 : 1000000;
constexpr unsigned shape_operation_count = operation_count / 4;
#else
constexpr unsigned operation_count = test::sanitized ? 150000 : 1000000;
#endif

class Model {
 public:
  Model(uint64_t seed, size_t most_live_bytes) : random_(seed), most_live_bytes_(most_live_bytes) {}

  bool may_fail = false;                     // memory is limited: NULL with ENOMEM is an answer
  void (*between)(test::Random&) = nullptr;  // what strangers do
  size_t refusals() const { return refusals_; }

  void run(unsigned operations) {
    for (unsigned i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      if (i % (operations / 16) == 0) change_phase();
      if (between != nullptr) between(random_);
      step();
      if (i % (operations / 40) == 0) {
        ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message() << " after " << i;
        check_statistics();
      }
    }
    while (!blocks_.empty() && !testing::Test::HasFailure()) remove(blocks_.size() - 1);
    ASSERT_EQ(ashlar_check(), 0) << ashlar_last_message();
    check_statistics();
  }

 private:
  struct Block {
    unsigned char* at;
    size_t size;    // asked for
    size_t usable;  // all of it is patterned
    size_t alignment;
    uint64_t tag;
  };

  // Long blocks are patterned at both ends and in samples; overlap is found by addresses anyway.
  static constexpr size_t whole_bytes = 4096;
  static constexpr size_t end_bytes = 512;

  static void write(const Block& block) {
    if (block.usable <= whole_bytes) {
      test::fill(block.at, block.usable, block.tag);
      return;
    }
    test::fill(block.at, end_bytes, block.tag);
    test::fill(block.at + block.usable - end_bytes, end_bytes, block.tag + 1);
    for (size_t i = whole_bytes; i + 8 + end_bytes <= block.usable; i += whole_bytes) {
      test::fill(block.at + i - 8, 16, block.tag + i);
    }
  }

  static bool intact(const Block& block) {
    if (block.usable <= whole_bytes) return test::filled(block.at, block.usable, block.tag);
    if (!test::filled(block.at, end_bytes, block.tag)) return false;
    if (!test::filled(block.at + block.usable - end_bytes, end_bytes, block.tag + 1)) return false;
    for (size_t i = whole_bytes; i + 8 + end_bytes <= block.usable; i += whole_bytes) {
      if (!test::filled(block.at + i - 8, 16, block.tag + i)) return false;
    }
    return true;
  }

  void change_phase() {
    phase_ = static_cast<unsigned>(random_.below(5));
    target_blocks_ = random_.one_in(4) ? random_.below(100) : random_.between(100, 12000);
    if (may_fail) target_blocks_ = 12000;  // it never gets there
    favourite_ = random_.between(1, 1200);
  }

  size_t pick_size() {
    if (phase_ == 0 || random_.one_in(3)) return random_.between(0, 1100);
    if (phase_ == 1) return favourite_;
    if (phase_ == 2 && random_.one_in(20)) return random_.between(1, 300 * KiB);
    if (phase_ == 3 && random_.one_in(200)) return random_.between(1, 4 * MiB);
    if (random_.one_in(10)) return random_.between(1000, 20000);
    return size_t{1} << random_.between(0, 11);
  }

  void step() {
    bool const grow = blocks_.size() < target_blocks_ && live_bytes_ < most_live_bytes_;
    unsigned const kind = static_cast<unsigned>(random_.below(100));
    if (kind < 12 && !blocks_.empty()) return resize(random_.below(blocks_.size()));
    if (!blocks_.empty() && kind >= (grow ? 65u : 35u))
      return remove(random_.below(blocks_.size()));
    add();
  }

  void add() {
    size_t const size = pick_size();
    unsigned const kind = static_cast<unsigned>(random_.below(10));
    size_t alignment = test::alignment;
    void* at = nullptr;
    errno = 0;
    if (kind == 0) {
      alignment =
          size_t{1} << (random_.one_in(50) ? random_.between(0, 20) : random_.between(0, 12));
      at = heap::aligned_alloc(alignment, size);
      alignment = std::max(alignment, test::alignment);
    } else if (kind <= 2) {
      at = heap::calloc(kind, size / kind);
      ASSERT_TRUE(at == nullptr || test::all_zero(at, size / kind * kind)) << size;
    } else {
      at = heap::malloc(size);
    }
    if (at == nullptr) return refused();
    accept({static_cast<unsigned char*>(at), kind == 2 ? size / 2 * 2 : size, 0, alignment, 0});
  }

  void accept(Block block) {
    block.usable = heap::usable_size(block.at);
    block.tag = random_.next() | 1;
    ASSERT_GE(block.usable, block.size);
    ASSERT_TRUE(test::is_aligned(block.at, block.alignment)) << static_cast<void*>(block.at);
    uintptr_t const begin = test::address(block.at);
    auto const next = ranges_.lower_bound(begin);
    ASSERT_TRUE(next == ranges_.end() || block.usable <= next->first - begin)
        << "overlaps the next";
    if (next != ranges_.begin()) {
      auto const before = std::prev(next);
      ASSERT_LE(before->second, begin - before->first) << "overlaps the one before";
    }
    ranges_.emplace_hint(next, begin, block.usable);
    write(block);
    blocks_.push_back(block);
    live_bytes_ += block.usable;
    ++allocations_;
  }

  void forget(size_t index) {
    live_bytes_ -= blocks_[index].usable;
    ranges_.erase(test::address(blocks_[index].at));
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }

  void remove(size_t index) {
    ASSERT_TRUE(intact(blocks_[index])) << static_cast<void*>(blocks_[index].at);
    heap::free(blocks_[index].at);
    forget(index);
    ++frees_;
  }

  void resize(size_t index) {
    Block const old = blocks_[index];
    size_t const size = random_.one_in(3) ? old.size + random_.below(64) : pick_size();
    ASSERT_TRUE(intact(old)) << static_cast<void*>(old.at);
    errno = 0;
    auto* const at = static_cast<unsigned char*>(heap::realloc(old.at, size));
    if (at == nullptr) {
      ASSERT_TRUE(intact(old)) << "a refused realloc changed the block";
      ASSERT_EQ(heap::usable_size(old.at), old.usable);
      return refused();
    }
    // Whole words: the last ones of a pattern depend on where it ends.
    size_t const kept =
        std::min({old.size, size, old.usable <= whole_bytes ? old.usable : end_bytes});
    ASSERT_TRUE(test::filled(at, kept / 8 * 8, old.tag)) << old.size << " -> " << size;
    if (old.usable > whole_bytes) {
      for (size_t i = whole_bytes;
           i + 8 + end_bytes <= old.usable && i + 8 <= std::min(old.size, size); i += whole_bytes) {
        ASSERT_TRUE(test::filled(at + i - 8, 16, old.tag + i)) << old.size << " -> " << size;
      }
    }
    forget(index);
    bool const moved = at != old.at;
    accept({at, size, 0, moved ? test::alignment : old.alignment, 0});
    if (moved)
      ++frees_;
    else
      --allocations_;
  }

  void refused() {
    ++refusals_;
    ASSERT_TRUE(may_fail) << "out of memory";
    ASSERT_EQ(errno, ENOMEM);
    // Far more is freed than one block, so that the program goes on.
    for (int i = 0; i < 20 && !blocks_.empty(); ++i) remove(random_.below(blocks_.size()));
  }

  void check_statistics() {
    ashlar_stats_t stats;
    ashlar_stats(&stats);
    ASSERT_EQ(stats.live_blocks, blocks_.size());
    ASSERT_EQ(stats.live_bytes, live_bytes_);
    ASSERT_EQ(stats.allocations, allocations_);
    ASSERT_EQ(stats.frees, frees_);
  }

  test::Random random_;
  size_t most_live_bytes_;
  std::vector<Block> blocks_;
  std::map<uintptr_t, size_t> ranges_;
  size_t live_bytes_ = 0;
  size_t target_blocks_ = 1000;
  size_t favourite_ = 48;
  unsigned phase_ = 0;
  uint64_t allocations_ = 0;
  uint64_t frees_ = 0;
  size_t refusals_ = 0;
};

// Catches what no single test thought of.
HEAP_TEST(Model, million_operations) {
  Model model(test::printed_seed(), 48 * MiB);
  model.run(operation_count);
}

#ifdef ASHLAR_FAKE_OS

// As above where memory is never one piece.
HEAP_TEST(Model, strangers_grow_in_between) {
  Model model(test::printed_seed(), 24 * MiB);
  model.between = [](test::Random& random) {
    if (random.one_in(5000)) (void)fake_os::stranger_grow(random.between(1, 3));
    if (random.one_in(20000)) fake_os::stranger_before_every_grow(random.below(2));
  };
  model.run(shape_operation_count);
  EXPECT_TRUE(fake_os::strangers_intact());
}

// As above where memory ends all the time.
HEAP_TEST(Model, memory_is_short) {
  fake_os::set_limit(2 * MiB);
  Model model(test::printed_seed(), 24 * MiB);
  model.may_fail = true;
  model.run(shape_operation_count);
  EXPECT_GT(model.refusals(), 10u);
}

// As above with a linker's heap at an odd place, strangers, a limit, and changing growth.
HEAP_TEST(Model, everything_at_once) {
  fake_os::set_up(
      {.initial_offset = 0x1110, .initial_bytes = 5 * 65536 - 0x1110, .initial_dirty = true});
  fake_os::set_limit(4 * MiB);
  Model model(test::printed_seed(), 16 * MiB);
  model.may_fail = true;
  model.between = [](test::Random& random) {
    if (random.one_in(20000)) (void)fake_os::stranger_grow(1);
    if (random.one_in(3000)) (void)ashlar_set_growth(static_cast<unsigned>(random.below(20)));
    if (random.one_in(3000)) fake_os::refuse_nth(static_cast<unsigned>(random.between(1, 3)));
    if (random.one_in(5000)) (void)ashlar_reserve(random.below(MiB));
  };
  model.run(shape_operation_count);
  EXPECT_TRUE(fake_os::strangers_intact());
}

#endif

}  // namespace
