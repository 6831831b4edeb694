// Field report, section I: semantics, statistics, snapshots.
#include "cases.h"

#ifdef __EMSCRIPTEN__
int malloc_trim(size_t kept);
#endif

CASE(I88) {
  void* one = malloc(0);
  void* two = malloc(0);
  CHECK(one && two && one != two);
  void* zeroed = calloc(0, 5);
  CHECK(zeroed && zeroed != one && zeroed != two);
  // ashlar.h: size 0 shrinks the block and returns it, it never frees.
  void* block = malloc(100);
  ashlar_stats_t before, after;
  ashlar_stats(&before);
  void* shrunk = realloc(block, 0);
  ashlar_stats(&after);
  CHECK(shrunk != NULL);
  CHECK_THAT(after.live_blocks, ==, before.live_blocks);
  free(shrunk);
  free(zeroed);
  free(two);
  free(one);
}

CASE(I89) {
  unsigned char* block = malloc(1);
  REQUIRE(block);
  block[0] = 0x89;
  for (int power = 0; power < 20; power++) {
    size_t bytes = (size_t)1 << power;
    block = realloc(block, bytes);
    REQUIRE(block);
    CHECK(power == 0 || intact(block + 1, bytes / 2 - 1, 89));
    CHECK(block[0] == 0x89);
    fill(block + 1, bytes - 1, 89);
    if (power % 4 == 0) REQUIRE(malloc(33));
  }
  CHECK(ashlar_check() == 0);
}

#ifdef __EMSCRIPTEN__
CASE(I90) {
  enum { count = 300 };
  static void* block[count];
  for (uint32_t index = 0; index < count; index++) {
    REQUIRE(block[index] = malloc(1000 + index * 64));
    fill(block[index], 1000, index);
  }
  for (uint32_t index = 0; index < count; index += 2) free(block[index]);
  int answer = malloc_trim(0);
  CHECK(answer == 0 || answer == 1);
  CHECK(ashlar_check() == 0);
  for (uint32_t index = 1; index < count; index += 2) {
    CHECK(intact(block[index], 1000, index));
    free(block[index]);
  }
  answer = malloc_trim(4096);
  CHECK(answer == 0 || answer == 1);
  CHECK(ashlar_check() == 0);
  for (uint32_t index = 0; index < count; index++) {
    REQUIRE(block[index] = malloc(2000));
    fill(block[index], 2000, index);
  }
  for (uint32_t index = 0; index < count; index++) CHECK(intact(block[index], 2000, index));
}
#endif

CASE(I92) {
  // Every entry counts once: memalign too, and a realloc only when it moves the block.
  ashlar_stats_t start, now;
  ashlar_stats(&start);
  void *p = malloc(10), *q = calloc(3, 7), *r = aligned_alloc(64, 100), *s = NULL, *t;
  CHECK(posix_memalign(&s, 4096, 100) == 0);
  t = realloc(NULL, 50);
  REQUIRE(p && q && r && s && t);
  ashlar_stats(&now);
  CHECK_THAT(now.allocations - start.allocations, ==, 5);
  CHECK_THAT(now.live_blocks - start.live_blocks, ==, 5);
  void* same = realloc(t, 50);
  ashlar_stats(&now);
  CHECK(same == t);
  CHECK_THAT(now.allocations - start.allocations, ==, 5);
  void* moved = realloc(same, 100 * KIB);
  ashlar_stats(&now);
  CHECK(moved != same);
  CHECK_THAT(now.allocations - start.allocations, ==, 6);
  CHECK_THAT(now.live_blocks - start.live_blocks, ==, 5);
  free(p);
  free(q);
  free(r);
  free(s);
  free(moved);
  free(NULL);
  ashlar_stats(&now);
  CHECK_THAT(now.live_blocks, ==, start.live_blocks);
  CHECK_THAT(now.frees - start.frees, ==, 6);
}

// What the host does with views and snapshots needs a program in parts.
CASE(I94_reserve) { CHECK(ashlar_reserve(20 * MIB) == 0); }
CASE(I94_use) {
  // Headers and alignment are counted in what was reserved: 1024 blocks and their 16 KiB of tags.
  for (uint32_t blocks = 0; blocks < 19 * 16; blocks++) {
    void* block = malloc(64 * KIB);
    REQUIRE(block);
    fill(block, 64 * KIB, blocks);
  }
}
CASE(I94_grow) { REQUIRE(malloc(200 * MIB)); }

enum { snapshot_count = 2000 };
static unsigned char* snapshot_block[snapshot_count];
static size_t snapshot_bytes[snapshot_count];
CASE(I96_save) {
  random_state = 96;
  for (uint32_t index = 0; index < snapshot_count; index++) {
    snapshot_bytes[index] = random_between(1, index % 20 == 0 ? 60000 : 600);
    REQUIRE(snapshot_block[index] = malloc(snapshot_bytes[index]));
    fill(snapshot_block[index], snapshot_bytes[index], index);
  }
  for (uint32_t index = 0; index < snapshot_count; index += 3) {
    free(snapshot_block[index]);
    snapshot_block[index] = NULL;
  }
}
CASE(I96_go_on) {
  CHECK(ashlar_check() == 0);
  for (uint32_t index = 0; index < snapshot_count; index++) {
    if (!snapshot_block[index]) {
      REQUIRE(snapshot_block[index] = malloc(snapshot_bytes[index]));
      fill(snapshot_block[index], snapshot_bytes[index], index);
    }
  }
  for (uint32_t index = 0; index < snapshot_count; index++) {
    CHECK(intact(snapshot_block[index], snapshot_bytes[index], index));
    free(snapshot_block[index]);
  }
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  CHECK_THAT(stats.live_blocks, ==, 0);
  CHECK(ashlar_check() == 0);
}

CASE(I97) {
  enum { count = 4000 };
  static void* block[count];
  for (int turn = 0; turn < 3; turn++) {
    for (uint32_t index = 0; index < count; index++) {
      size_t bytes = index % 65;
      REQUIRE(block[index] = malloc(bytes));
      fill(block[index], bytes, index);
    }
    for (uint32_t index = 0; index < count; index++) {
      CHECK(intact(block[index], index % 65, index));
    }
    for (uint32_t index = 0; index < count; index++) free(block[(index * 7919u) % count]);
    for (uint32_t index = 0; index < 500; index++) {
      REQUIRE(posix_memalign(&block[index], 64, index % 40) == 0);
      CHECK(is_aligned(block[index], 64));
      fill(block[index], index % 40, index);
    }
    for (uint32_t index = 0; index < 500; index++) {
      CHECK(intact(block[index], index % 40, index));
      free(block[index]);
    }
    CHECK(ashlar_check() == 0);
  }
}
