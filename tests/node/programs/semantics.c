// What every block and every call promises, on every target and in every profile. Cases that fill
// memory expect the host to have chosen a small end.
#include "cases.h"

#include <malloc.h>

#ifndef __EMSCRIPTEN__
size_t malloc_usable_size(void* block);
#endif

// Sizes on both sides of every border that a size class, a page or a header might have.
static size_t border_size(uint32_t index) {
  static const int offsets[] = {-17, -16, -9, -8, -1, 0, 1, 8, 9, 16, 17};
  uint32_t power = 5 + index / 22 % 14;
  size_t bytes = (size_t)1 << power;
  if (index & 1) bytes += bytes / 2;
  return (size_t)((int)bytes + offsets[index / 2 % 11]);
}
enum { border_count = 22 * 14 };

CASE(zero_size) {
  enum { count = 1000 };
  static void* block[count];
  for (int index = 0; index < count; index++) REQUIRE(block[index] = malloc(0));
  for (int index = 0; index < count; index++) {
    for (int other = index + 1; other < count; other += 37) CHECK(block[index] != block[other]);
    CHECK(is_aligned(block[index], DEFAULT_ALIGNMENT));
  }
  for (int index = 0; index < count; index++) free(block[index]);
  free(NULL);
  CHECK(realloc(NULL, 0) != NULL);
}

CASE(refused_sizes) {
  // From PTRDIFF_MAX up; only wasm32 with room for them serves some below 4 GiB (C34).
  static const size_t sizes[] = {
      PTRDIFF_MAX,   (size_t)PTRDIFF_MAX + 1, SIZE_MAX / 2 + 2, SIZE_MAX - 65536, SIZE_MAX - 4096,
      SIZE_MAX - 16, SIZE_MAX - 15,           SIZE_MAX - 8,     SIZE_MAX - 1,     SIZE_MAX};
  unsigned char* kept = malloc(300);
  REQUIRE(kept);
  fill(kept, 300, 5);
  for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
    void* untouched = &kept;
    errno = 0;
    CHECK(malloc(sizes[index]) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(calloc(1, sizes[index]) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(calloc(sizes[index], 1) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(realloc(kept, sizes[index]) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(realloc(NULL, sizes[index]) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(aligned_alloc(64, sizes[index]) == NULL);
    CHECK(errno == ENOMEM);
    CHECK(posix_memalign(&untouched, 64, sizes[index]) == ENOMEM);
    CHECK(untouched == &kept);
    CHECK(ashlar_malloc(sizes[index]) == NULL);
    CHECK(ashlar_reserve(sizes[index]) == -1 && errno == ENOMEM);
    CHECK(ashlar_good_size(sizes[index]) >= sizes[index]);
  }
  // The largest alignment there is, and one that leaves no room.
  errno = 0;
  CHECK(aligned_alloc((size_t)1 << 31, (size_t)1 << 31) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(intact(kept, 300, 5));
  CHECK(ashlar_check() == 0);
}

CASE(calloc_overflow) {
  static const size_t pairs[][2] = {{0x10001, 0x10000},    {SIZE_MAX, 2},
                                    {2, SIZE_MAX},         {SIZE_MAX / 2 + 1, 2},
                                    {SIZE_MAX / 3 + 1, 3}, {(size_t)1 << 16, (size_t)1 << 16},
                                    {SIZE_MAX, SIZE_MAX}};
  for (size_t index = 0; index < sizeof pairs / sizeof *pairs; index++) {
    errno = 0;
    CHECK(calloc(pairs[index][0], pairs[index][1]) == NULL);
    CHECK(errno == ENOMEM);
  }
  CHECK(calloc(0, SIZE_MAX) != NULL);
  CHECK(calloc(SIZE_MAX, 0) != NULL);
}

CASE(alignment) {
  for (uint32_t index = 0; index < border_count; index++) {
    size_t bytes = border_size(index);
    void* block = malloc(bytes);
    void* zeroed = calloc(bytes, 1);
    REQUIRE(block && zeroed);
    CHECK(is_aligned(block, DEFAULT_ALIGNMENT));
    CHECK(is_aligned(zeroed, DEFAULT_ALIGNMENT));
    block = realloc(block, bytes + 100);
    REQUIRE(block);
    CHECK(is_aligned(block, DEFAULT_ALIGNMENT));
    free(block);
    free(zeroed);
  }
}

CASE(aligned) {
  void* odd = aligned_alloc(16, 24);
  CHECK(odd && is_aligned(odd, 16));
  free(odd);
  for (size_t alignment = 1; alignment <= 1 * MIB; alignment *= 2) {
    for (size_t bytes = 0; bytes < 70000; bytes = bytes * 3 + 1) {
      unsigned char* block = aligned_alloc(alignment, bytes);
      REQUIRE(block);
      CHECK(is_aligned(block, alignment));
      size_t usable = ashlar_usable_size(block);
      CHECK_THAT(usable, >=, bytes);
      fill(block, usable, 3);
      void* neighbour = malloc(50);
      memset(neighbour, 0, 50);
      CHECK(intact(block, usable, 3));
      unsigned char* longer = realloc(block, bytes + 3000);
      REQUIRE(longer);
      CHECK(intact(longer, usable < bytes + 3000 ? usable : bytes, 3));
      free(longer);
      free(neighbour);
    }
  }
  void* block = NULL;
  CHECK(posix_memalign(&block, sizeof(void*), 100) == 0 && block);
  void* untouched = &block;
  static const size_t wrong[] = {0, 1, 2, 3, 6, 12, 24, 48, 65, SIZE_MAX, SIZE_MAX - 1};
  for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++) {
    CHECK(posix_memalign(&untouched, wrong[index], 10) == EINVAL);
    CHECK(untouched == &block);
  }
  errno = 0;
  CHECK(aligned_alloc(0, 8) == NULL);
  CHECK(errno == EINVAL);
  errno = 0;
  CHECK(aligned_alloc(48, 48) == NULL);
  CHECK(errno == EINVAL);
  CHECK(ashlar_check() == 0);
}

CASE(realloc_refused) {
  for (uint32_t index = 0; index < border_count; index += 3) {
    size_t bytes = border_size(index);
    unsigned char* block = malloc(bytes);
    REQUIRE(block);
    fill(block, bytes, index);
    ashlar_stats_t before, after;
    ashlar_stats(&before);
    errno = 0;
    CHECK(realloc(block, SIZE_MAX - 70000) == NULL);
    CHECK(errno == ENOMEM);
    ashlar_stats(&after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK(intact(block, bytes, index));
    CHECK(realloc(block, bytes) == block);
    free(block);
  }
}

CASE(realloc_same_size) {
  for (uint32_t index = 0; index < border_count; index++) {
    size_t bytes = border_size(index);
    unsigned char* block = malloc(bytes);
    REQUIRE(block);
    CHECK(realloc(block, bytes) == block);
    CHECK(realloc(block, ashlar_usable_size(block)) == block);
    CHECK(realloc(block, bytes) == block);
  }
}

CASE(realloc_contents) {
  random_state = 7;
  size_t bytes = 10;
  unsigned char* block = malloc(bytes);
  REQUIRE(block);
  fill(block, bytes, 0);
  for (uint32_t turn = 1; turn < 3000; turn++) {
    size_t next =
        turn % 5 == 0 ? border_size(random_bits() % border_count) : random_between(1, 5000);
    unsigned char* moved = realloc(block, next);
    REQUIRE(moved);
    CHECK(intact(moved, next < bytes ? next : bytes, turn - 1));
    block = moved;
    bytes = next;
    fill(block, bytes, turn);
    if (turn % 7 == 0) free(malloc(random_between(1, 3000)));
    if (turn % 50 == 0) REQUIRE(malloc(random_between(1, 300)));
  }
  CHECK(ashlar_check() == 0);
}

CASE(usable_size) {
  static struct {
    unsigned char* block;
    size_t usable;
  } set[border_count];
  for (uint32_t index = 0; index < border_count; index++) {
    size_t bytes = border_size(index);
    REQUIRE(set[index].block = malloc(bytes));
    set[index].usable = ashlar_usable_size(set[index].block);
    CHECK_THAT(set[index].usable, >=, bytes);
    CHECK_THAT(malloc_usable_size(set[index].block), ==, set[index].usable);
    CHECK_THAT(ashlar_good_size(bytes), >=, bytes);
    CHECK_THAT(set[index].usable, >=, ashlar_good_size(bytes));
    fill(set[index].block, set[index].usable, index);
  }
  CHECK(ashlar_check() == 0);
  for (uint32_t index = 0; index < border_count; index++) {
    CHECK(intact(set[index].block, set[index].usable, index));
    free(set[index].block);
  }
  CHECK_THAT(ashlar_usable_size(NULL), ==, 0);
  CHECK(ashlar_check() == 0);
}

CASE(calloc_reused) {
  enum { count = 600 };
  static unsigned char* block[count];
  random_state = 11;
  for (int turn = 0; turn < 20; turn++) {
    for (int index = 0; index < count; index++) {
      size_t bytes = index % 40 == 0 ? random_between(5000, 100000) : random_between(1, 1500);
      REQUIRE(block[index] = malloc(bytes));
      memset(block[index], 0xd1, ashlar_usable_size(block[index]));
    }
    for (int index = 0; index < count; index++) free(block[(index * 331) % count]);
    for (int index = 0; index < count; index++) {
      size_t bytes = index % 40 == 0 ? random_between(5000, 100000) : random_between(1, 1500);
      REQUIRE(block[index] = calloc(1, bytes));
      CHECK(all_bytes_are(block[index], bytes, 0));
      memset(block[index], 0xd2, ashlar_usable_size(block[index]));
    }
    for (int index = 0; index < count; index++) free(block[index]);
  }
}

// A list of blocks through their first word.
static void* take_all(size_t bytes, void* list) {
  for (void** block; (block = malloc(bytes)); list = block) *block = list;
  return list;
}
static size_t free_all(void* list) {
  size_t bytes = 0;
  for (void* next; list; list = next) {
    next = *(void**)list;
    bytes += ashlar_usable_size(list);
    free(list);
  }
  return bytes;
}

CASE(out_of_memory) {
  unsigned char* kept = malloc(500);
  REQUIRE(kept);
  fill(kept, 500, 1);
  for (int turn = 0; turn < 3; turn++) {
    void* list = take_all(1 * MIB, NULL);
    list = take_all(10 * KIB, list);
    list = take_all(200, list);
    list = take_all(40, list);
    errno = 0;
    CHECK(malloc(40) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(calloc(3, 100) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(realloc(kept, 2 * MIB) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(aligned_alloc(4096, 4096) == NULL);
    CHECK(errno == ENOMEM);
    CHECK(ashlar_reserve(64 * KIB) == -1 && errno == ENOMEM);
    CHECK(intact(kept, 500, 1));
    CHECK(ashlar_check() == 0);
    free_all(list);
    CHECK(ashlar_check() == 0);
    free(malloc(1 * MIB));
  }
}

CASE(failure_changes_nothing) {
  void* list = take_all(40, take_all(3000, take_all(1 * MIB, NULL)));
  ashlar_stats_t before, after;
  ashlar_stats(&before);
  uint64_t memory = memory_bytes();
  for (int turn = 0; turn < 50; turn++) {
    CHECK(malloc(40) == NULL);
    CHECK(malloc(5 * MIB) == NULL);
    CHECK(realloc(list, 5 * MIB) == NULL);
  }
  ashlar_stats(&after);
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  CHECK_THAT(memory_bytes(), ==, memory);
}

CASE(empty_pages_are_reclaimed) {
  // Memory full of small blocks of many sizes; all but the last few freed: pages held back would
  // keep the big request from being served.
  random_state = 3;
  void* list = NULL;
  size_t sizes[] = {1000, 700, 500, 300, 200, 100, 64, 48, 32, 16};
  int full = 0;
  size_t share = (size_t)(memory_bytes() > 64 * MIB ? 8 : 1) * 200 * KIB;
  while (!full) {
    for (int index = 0; index < 10 && !full; index++) {
      for (size_t bytes = 0; bytes < share; bytes += sizes[index]) {
        void** block = malloc(sizes[index]);
        if (!block) {
          full = 1;
          break;
        }
        *block = list;
        list = block;
      }
    }
  }
  uint64_t top = top_bytes();
  size_t bytes = free_all(list);
  metric("bytes_freed", (double)bytes);
  errno = 0;
  void* big = malloc(bytes / 100 * 97);
  CHECK(big != NULL);
  CHECK_THAT(top_bytes(), <=, top + 2 * PAGE_BYTES);
  free(big);
  // The same, when the freed pages are scattered: each single one serves one block of 3000 bytes.
  CHECK(ashlar_check() == 0);
}

CASE(plateau) {
  enum { count = 400 };
  static void* block[count];
  uint64_t settled = 0;
  for (uint32_t cycle = 0; cycle < 210; cycle++) {
    // Every third cycle has the same sizes; three kinds follow each other. By the 150th every size
    // class has made its trips to the arena, and has a page or never will.
    random_state = 100 + cycle % 3;
    for (int index = 0; index < count; index++) {
      size_t bytes = cycle % 3 == 0   ? random_between(1, 1000)
                     : cycle % 3 == 1 ? random_between(1000, 20000)
                                      : random_between(1, 40) * random_between(1, 40) * 16;
      REQUIRE(block[index] = malloc(bytes));
    }
    for (int index = 0; index < count; index++) free(block[(index * 157) % count]);
    if (cycle == 149) settled = top_bytes();
    if (cycle > 149) CHECK_THAT(top_bytes(), ==, settled);
  }
  metric("plateau_bytes", (double)settled);
}

CASE(plateau_size_by_size) {
  // Any one size after any other: the memory of one serves the next.
  uint64_t settled = 0;
  for (uint32_t turn = 0; turn < 6; turn++) {
    for (uint32_t index = 0; index < border_count; index += 5) {
      size_t bytes = border_size(index), count = 1 * MIB / (bytes + 32) + 1;
      void* list = NULL;
      for (size_t block = 0; block < count; block++) {
        void** next = malloc(bytes < sizeof(void*) ? sizeof(void*) : bytes);
        REQUIRE(next);
        *next = list;
        list = next;
      }
      free_all(list);
    }
    if (turn == 1) settled = top_bytes();
    if (turn > 1) CHECK_THAT(top_bytes(), ==, settled);
  }
  // 1 MiB live at any time; 400 KiB is the largest size, so at most one more block of it.
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  metric("used_peak_bytes", (double)stats.used_peak_bytes);
  CHECK_THAT(stats.used_peak_bytes, <=, 2 * MIB);
}

CASE(lone_block_grows_in_place) {
  unsigned char* block = malloc(100 * KIB);
  REQUIRE(block);
  fill(block, 100 * KIB, 9);
  for (size_t bytes = 200 * KIB; bytes <= 12 * MIB; bytes += 100 * KIB) {
    REQUIRE(realloc(block, bytes) == block);
  }
  CHECK(intact(block, 100 * KIB, 9));
  REQUIRE(realloc(block, 50 * KIB) == block);
  REQUIRE(realloc(block, 10 * MIB) == block);
  CHECK(intact(block, 50 * KIB, 9));
  CHECK(ashlar_check() == 0);
}

// The host dirties the fresh memory between these two (semantics.test.mjs).
CASE(fresh_reserve) {
  uint64_t before = top_bytes();
  // What the sizes below need, and some more.
  CHECK(ashlar_reserve(12 * MIB) == 0);
  metric("fresh_begin", (double)before);
  metric("fresh_end", (double)top_bytes());
}
CASE(fresh_calloc) {
  static const size_t sizes[] = {8 * MIB, 300 * KIB, 20 * KIB, 5000, 2500};
  for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
    void* block = calloc(1, sizes[index]);
    REQUIRE(block);
    metric("block", (double)(uintptr_t)block);
    metric("block_bytes", (double)sizes[index]);
  }
}

CASE(tiny) {
  uint64_t before = top_bytes();
  REQUIRE(malloc(10));
  metric("bytes_taken", (double)(top_bytes() - before));
  CHECK_THAT(top_bytes() - before, <=, 2 * PAGE_BYTES);
}

CASE(reserve) {
  CHECK(ashlar_reserve(8 * MIB) == 0);
  uint64_t top = top_bytes();
  ashlar_stats_t before, after;
  ashlar_stats(&before);
  CHECK_THAT(before.free_bytes, >=, 8 * MIB);
  CHECK(ashlar_reserve(8 * MIB) == 0);
  CHECK_THAT(top_bytes(), ==, top);
  for (size_t sum = 0; sum + 100 * KIB < 8 * MIB; sum += 100 * KIB + 32) REQUIRE(malloc(100 * KIB));
  ashlar_stats(&after);
  CHECK_THAT(top_bytes(), ==, top);
  CHECK_THAT(after.grow_count, ==, before.grow_count);
  CHECK(ashlar_reserve(0) == 0);
}

CASE(errno_is_kept) {
  errno = 77;
  void* block = malloc(100);
  block = realloc(block, 5000);
  free(block);
  free(calloc(3, 3));
  CHECK(ashlar_usable_size(malloc(3)) >= 3);
  CHECK(errno == 77);
}

CASE(version) {
  int major = ASHLAR_VERSION_MAJOR, minor = ASHLAR_VERSION_MINOR, patch = ASHLAR_VERSION_PATCH;
  char expected[40] = "ashlar ";
  char* end = expected + 7;
  int parts[3] = {major, minor, patch};
  for (int index = 0; index < 3; index++) {
    if (parts[index] >= 10) *end++ = (char)('0' + parts[index] / 10);
    *end++ = (char)('0' + parts[index] % 10);
    *end++ = index < 2 ? '.' : ' ';
  }
  CHECK(strncmp(ashlar_version(), expected, strlen(expected)) == 0);
  CHECK(profile_is("fast") + profile_is("small") + profile_is("bare") == 1);
  metric("fast", profile_is("fast"));
  metric("small", profile_is("small"));
  metric("bare", profile_is("bare"));
  CHECK(strcmp(ashlar_last_message(), "") == 0);
}

CASE(both_faces) {
  // malloc and ashlar_malloc are one heap.
  void* block = malloc(100);
  CHECK(ashlar_usable_size(block) >= 100);
  ashlar_free(block);
  block = ashlar_calloc(10, 30);
  CHECK(all_bytes_are(block, 300, 0));
  block = realloc(block, 5000);
  block = ashlar_realloc(block, 70);
  free(block);
  free(ashlar_aligned_alloc(256, 300));
  ashlar_free(aligned_alloc(256, 300));
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  CHECK_THAT(stats.live_blocks, ==, 0);
}
