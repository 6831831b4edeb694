// Writes beyond a block's end that the next free beside it must not build on: profile `fast`.
#include <ashlar.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>

#include <string>

#include "profile.h"
#include "support.h"

#if TEST_PROFILE == TEST_PROFILE_fast

namespace {

struct Neighbours {
  char* first = static_cast<char*>(ashlar_malloc(5000));
  char* second = static_cast<char*>(ashlar_malloc(5000));
  char* third = static_cast<char*>(ashlar_malloc(5000));

  // What stands behind the first block: the second one's header.
  char* behind_first() { return first + ashlar_usable_size(first); }
};

void expect_corrupted_header(const std::function<void()>& body) {
  test::Ending const ending = test::end_of(body);
  EXPECT_EQ(ending.signal, SIGABRT) << ending.error_output;
  EXPECT_EQ(ending.error_output.find("ashlar: corrupted header at 0x"), 0u) << ending.error_output;
}

// Catches a live block that is unlinked, and what its owner wrote in it followed, since one zero
// byte made it look free.
TEST(Overflow, a_string_end_on_a_live_neighbour) {
  expect_corrupted_header([] {
    Neighbours blocks;
    memset(blocks.second, 0x66, 5000);
    *blocks.behind_first() = 0;
    ashlar_free(blocks.first);
  });
  expect_corrupted_header([] {
    Neighbours blocks;
    memset(blocks.second, 0x66, 5000);
    *blocks.behind_first() = 0;
    (void)ashlar_realloc(blocks.first, 9000);
  });
}

// Catches a size believed that the block's other end does not confirm.
TEST(Overflow, a_free_neighbour_of_another_size) {
  for (size_t value : {size_t(0x40), size_t(0x4000), size_t(0x7ffffff0), ~size_t(0) - 15}) {
    expect_corrupted_header([=] {
      Neighbours blocks;
      ashlar_free(blocks.second);
      memcpy(blocks.behind_first(), &value, sizeof value);
      ashlar_free(blocks.first);
    });
  }
}

// Catches the size of the memory behind the last block read from where that block's overflow goes.
TEST(Overflow, the_rest_is_as_long_as_it_is) {
  for (int byte : {0, 0xff}) {
    test::run_in_child([=] {
      char* const last = static_cast<char*>(ashlar_malloc(50000));
      memset(last + ashlar_usable_size(last), byte, 4);
      char* const next = static_cast<char*>(ashlar_malloc(300000));
      ASSERT_NE(next, nullptr);
      memset(next, 1, 300000);
      char* const large = static_cast<char*>(ashlar_malloc(4 << 20));
      ASSERT_NE(large, nullptr);
      memset(large, 2, 4 << 20);
      ashlar_free(large);
      ashlar_free(next);
      EXPECT_EQ(ashlar_check(), 0) << ashlar_last_message();
    });
  }
}

}  // namespace

#endif
