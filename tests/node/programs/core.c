// The core archive beside the toolchain's own malloc (row G74): two heaps in one memory.
#include "cases.h"

CASE(G74) {
  enum { count = 3000 };
  static struct {
    unsigned char* block;
    size_t bytes;
  } theirs[count], ours[count];
  random_state = 74;
  ashlar_stats_t stats;
  for (uint32_t turn = 0; turn < 4 * count; turn++) {
    uint32_t index = random_bits() % count;
    if (theirs[index].block) {
      CHECK(intact(theirs[index].block, theirs[index].bytes, index));
      CHECK(intact(ours[index].block, ours[index].bytes, index + 1));
      free(theirs[index].block);
      ashlar_free(ours[index].block);
    }
    theirs[index].bytes = random_between(1, turn % 50 == 0 ? 50000 : 500);
    ours[index].bytes = random_between(1, turn % 50 == 25 ? 50000 : 500);
    REQUIRE(theirs[index].block = malloc(theirs[index].bytes));
    REQUIRE(ours[index].block = ashlar_malloc(ours[index].bytes));
    fill(theirs[index].block, theirs[index].bytes, index);
    fill(ours[index].block, ours[index].bytes, index + 1);
  }
  size_t live = 0;
  for (uint32_t index = 0; index < count; index++) {
    if (!theirs[index].block) continue;
    live++;
    CHECK(intact(theirs[index].block, theirs[index].bytes, index));
    CHECK(intact(ours[index].block, ours[index].bytes, index + 1));
  }
  // Only ours were counted: malloc is the toolchain's.
  ashlar_stats(&stats);
  CHECK_THAT(stats.live_blocks, ==, live);
  CHECK_THAT(stats.allocations, ==, 4 * count);
  CHECK(ashlar_check() == 0);
}
