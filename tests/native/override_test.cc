// The override archive under the C and C++ names, in a process whose every allocation it serves.
#include <ashlar.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <new>
#include <string>
#include <vector>

#include "profile.h"
#include "support.h"

namespace {

uint64_t allocations() {
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  return stats.allocations;
}

// Catches a build that forgot to link Ashlar: every name must be counted.
TEST(Override, every_name_is_served_by_ashlar) {
  std::vector<void*> blocks;
  auto counts = [&](const char* name, auto&& call) {
    uint64_t const before = allocations();
    blocks.push_back(call());
    EXPECT_NE(blocks.back(), nullptr) << name;
    EXPECT_EQ(allocations(), before + 1) << name;
    EXPECT_GE(ashlar_usable_size(blocks.back()), 24u) << name;
  };
  blocks.reserve(64);
  counts("malloc", [] { return malloc(24); });
  counts("calloc", [] { return calloc(3, 8); });
  counts("realloc", [] { return realloc(nullptr, 24); });
  counts("reallocarray", [] { return reallocarray(nullptr, 3, 8); });
  counts("aligned_alloc", [] { return aligned_alloc(16, 24); });
  counts("memalign", [] { return memalign(64, 24); });
  counts("valloc", [] { return valloc(24); });
  counts("pvalloc", [] { return pvalloc(24); });
  counts("posix_memalign", [] {
    void* block = nullptr;
    return posix_memalign(&block, 64, 24) == 0 ? block : nullptr;
  });
  counts("new", [] { return ::operator new(24); });
  counts("new[]", [] { return ::operator new[](24); });
  counts("new nothrow", [] { return ::operator new(24, std::nothrow); });
  counts("new[] nothrow", [] { return ::operator new[](24, std::nothrow); });
  counts("aligned new", [] { return ::operator new(24, std::align_val_t{64}); });
  counts("aligned new[]", [] { return ::operator new[](24, std::align_val_t{64}); });
  counts("aligned new nothrow",
         [] { return ::operator new(24, std::align_val_t{64}, std::nothrow); });
  counts("aligned new[] nothrow",
         [] { return ::operator new[](24, std::align_val_t{64}, std::nothrow); });
  counts("strdup", [] { return static_cast<void*>(strdup("a text of more than twenty-four")); });
  for (void* block : blocks) free(block);
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches a delete that goes elsewhere than its new.
TEST(Override, every_delete_gives_back) {
  ashlar_stats_t before, after;
  ashlar_stats(&before);
  ::operator delete(::operator new(40));
  ::operator delete[](::operator new[](40));
  ::operator delete(::operator new(40), size_t{40});
  ::operator delete[](::operator new[](40), size_t{40});
  ::operator delete(::operator new(40), std::nothrow);
  ::operator delete[](::operator new[](40), std::nothrow);
  std::align_val_t const alignment{128};
  ::operator delete(::operator new(40, alignment), alignment);
  ::operator delete[](::operator new[](40, alignment), alignment);
  ::operator delete(::operator new(40, alignment), size_t{40}, alignment);
  ::operator delete[](::operator new[](40, alignment), size_t{40}, alignment);
  ::operator delete(::operator new(40, alignment), alignment, std::nothrow);
  ::operator delete[](::operator new[](40, alignment), alignment, std::nothrow);
  ::operator delete(nullptr);
  ashlar_stats(&after);
  EXPECT_EQ(after.live_blocks, before.live_blocks);
  EXPECT_EQ(after.frees - before.frees, 12u);
}

// Catches wrong results of posix_memalign, and a refusal that touches the pointer. Row 51.
TEST(Override, posix_memalign) {
  void* const untouched = &errno;
  for (size_t alignment : {size_t{0}, size_t{1}, size_t{2}, sizeof(void*) / 2, sizeof(void*) + 1,
                           size_t{3}, size_t{24}, size_t{100}, SIZE_MAX}) {
    void* block = untouched;
    EXPECT_EQ(posix_memalign(&block, test::opaque(alignment), 8), EINVAL) << alignment;
    EXPECT_EQ(block, untouched);
  }
  for (size_t size : {SIZE_MAX, SIZE_MAX - 64, static_cast<size_t>(PTRDIFF_MAX)}) {
    void* block = untouched;
    EXPECT_EQ(posix_memalign(&block, 64, test::opaque(size)), ENOMEM) << size;
    EXPECT_EQ(block, untouched);
  }
  for (size_t alignment = sizeof(void*); alignment <= (1 << 21); alignment *= 2) {
    void* block = nullptr;
    ASSERT_EQ(posix_memalign(&block, alignment, 24), 0) << alignment;
    EXPECT_TRUE(test::is_aligned(block, alignment));
    free(block);
  }
}

// Catches a multiplication that wraps in the newer name too.
TEST(Override, reallocarray_overflow_leaves_the_block) {
  char* const block = static_cast<char*>(malloc(100));
  memset(block, 5, 100);
  errno = 0;
  EXPECT_EQ(reallocarray(test::opaque(block), test::opaque(SIZE_MAX / 2 + 1), 2), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(block[99], 5);
  free(block);
}

// Row 23. Catches a nothrow form that throws or aborts.
TEST(Override, nothrow_new_returns_null) {
  size_t const huge = test::opaque(SIZE_MAX / 2 + 1);
  EXPECT_EQ(::operator new(huge, std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](huge, std::nothrow), nullptr);
  EXPECT_EQ(::operator new(huge, std::align_val_t{64}, std::nothrow), nullptr);
  EXPECT_EQ(::operator new[](huge, std::align_val_t{64}, std::nothrow), nullptr);
}

// Row 22. Catches a throwing form that returns null: the program would write through it.
TEST(Override, throwing_new_ends_in_bad_alloc) {
  size_t const huge = test::opaque(SIZE_MAX / 2 + 1);
  EXPECT_THROW(::operator delete(::operator new(huge)), std::bad_alloc);
  EXPECT_THROW(::operator delete[](::operator new[](huge)), std::bad_alloc);
  EXPECT_THROW(::operator delete(::operator new(huge, std::align_val_t{64})), std::bad_alloc);
  EXPECT_THROW(::operator delete[](::operator new[](huge, std::align_val_t{64})), std::bad_alloc);
}

int handler_calls = 0;

// Catches an operator new that never asks the program's handler, or asks once and gives up.
TEST(Override, new_handler_is_called_until_it_gives_up) {
  std::set_new_handler([] {
    if (++handler_calls == 3) std::set_new_handler(nullptr);
  });
  EXPECT_THROW(::operator delete(::operator new(test::opaque(SIZE_MAX / 2 + 1))), std::bad_alloc);
  EXPECT_EQ(handler_calls, 3);
}

// Catches mallinfo's numbers standing still, and names that programs call and that are missing.
TEST(Override, information_calls) {
  void* const block = malloc(3 << 20);
  struct mallinfo2 const info = mallinfo2();
  EXPECT_GE(info.uordblks, size_t{3} << 20);
  EXPECT_GE(info.arena + info.hblkhd, info.uordblks);
  EXPECT_GE(malloc_usable_size(block), size_t{3} << 20);
  free(block);
  EXPECT_LT(mallinfo2().uordblks, info.uordblks);
}

// Row 90. Catches a trim that takes away what is in use.
TEST(Override, trim_leaves_live_blocks) {
  std::vector<char*> blocks;
  for (size_t size = 1; size < 300000; size = size * 3 / 2 + 1) {
    blocks.push_back(static_cast<char*>(malloc(size)));
    free(malloc(size * 2));
    memset(blocks.back(), static_cast<int>(size), size);
    (void)malloc_trim(0);
    (void)malloc_trim(SIZE_MAX);
  }
  size_t size = 1;
  for (char* block : blocks) {
    EXPECT_EQ(block[size - 1], static_cast<char>(size));
    free(block);
    size = size * 3 / 2 + 1;
  }
  EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
}

// Catches an allocator that real library code can't live on.
TEST(Override, standard_containers) {
  uint64_t const before = allocations();
  std::vector<std::string> texts;
  for (int i = 0; i < 20000; ++i)
    texts.push_back("number " + std::to_string(i) + " and more of it");
  size_t sum = 0;
  for (const std::string& text : texts) sum += text.size();
  EXPECT_GT(sum, 400000u);
  EXPECT_GT(allocations(), before + 20000);
}

}  // namespace
