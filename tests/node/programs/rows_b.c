// Field report, section B: out of memory.
#include "cases.h"

// Takes blocks of `bytes` into a list until NULL; the list's head.
static void* exhaust(size_t bytes, void* list) {
  for (;;) {
    void** block = malloc(bytes);
    if (!block) return list;
    *block = list;
    list = block;
  }
}

CASE(B21_huge) {
  errno = 0;
  CHECK(malloc(0x0fffffff) == NULL);
  CHECK(errno == ENOMEM);
  void* small = malloc(100);
  REQUIRE(small);
  fill(small, 100, 21);
  CHECK(malloc(0x0fffffff) == NULL);
  CHECK(intact(small, 100, 21));
  free(small);
  CHECK(ashlar_check() == 0);
}

CASE(B21_exhaust) {
  void** list = exhaust(4 * MIB, NULL);
  REQUIRE(list);
  CHECK(errno == ENOMEM);
  errno = 0;
  CHECK(malloc(4 * MIB) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(ashlar_check() == 0);
  void** next = *list;
  free(list);
  void* again = malloc(4 * MIB);
  CHECK(again != NULL);
  CHECK(malloc(4 * MIB) == NULL);
  free(again);
  while (next) {
    void** block = next;
    next = *block;
    free(block);
  }
  CHECK(ashlar_check() == 0);
}

CASE(B25) {
  // A refusal leaves every count as it was.
  void* list = exhaust(256 * KIB, NULL);
  list = exhaust(2 * KIB, list);
  list = exhaust(16, list);
  ashlar_stats_t before, after;
  ashlar_stats(&before);
  for (int turn = 0; turn < 100; turn++) {
    CHECK(malloc(16) == NULL);
    CHECK(malloc(3000) == NULL);
    CHECK(calloc(1, 16) == NULL);
    CHECK(aligned_alloc(64, 100) == NULL);
    CHECK(realloc(list, 5 * MIB) == NULL);
  }
  ashlar_stats(&after);
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  CHECK(ashlar_check() == 0);
}

CASE(B26_zero_left) {
  void* list = NULL;
  size_t blocks = 0;
  for (size_t bytes = 4 * MIB; bytes >= sizeof(void*); bytes /= 2) list = exhaust(bytes, list);
  // No room for a pointer: then none for more.
  for (size_t bytes = sizeof(void*); bytes < 5000; bytes += 7) {
    errno = 0;
    CHECK(malloc(bytes) == NULL);
    CHECK(errno == ENOMEM);
  }
  CHECK(ashlar_check() == 0);
  for (void* next; list; list = next, blocks++) {
    next = *(void**)list;
    free(list);
  }
  metric("blocks", (double)blocks);
  CHECK(ashlar_check() == 0);
  CHECK(malloc(4 * MIB) != NULL);
}

CASE(B26_sizes) {
  for (size_t below = 0; below <= 64; below++) {
    errno = 0;
    CHECK(malloc(SIZE_MAX - below) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(calloc(1, SIZE_MAX - below) == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(aligned_alloc(4096, SIZE_MAX - below) == NULL);
    CHECK(errno == ENOMEM);
  }
  void* block = malloc(100);
  for (size_t below = 0; below <= 64; below++) {
    errno = 0;
    CHECK(realloc(block, SIZE_MAX - below) == NULL);
    CHECK(errno == ENOMEM);
  }
  free(block);
  CHECK(ashlar_check() == 0);
}

CASE(B27) {
  // Up to the last wasm page that there is: the end of memory is 2^32 then, which is 0 in 32 bits.
  void* list = NULL;
  for (size_t bytes = 256 * MIB; bytes >= 64; bytes /= 4) list = exhaust(bytes, list);
  metric("wasm_pages", (double)(memory_bytes() / PAGE_BYTES));
  errno = 0;
  CHECK(malloc(64) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(malloc(1 * MIB) == NULL);
  CHECK(malloc(SIZE_MAX) == NULL);
  CHECK(ashlar_check() == 0);
  size_t freed = 0;
  uintptr_t highest = 0;
  for (void* next; list; list = next, freed++) {
    next = *(void**)list;
    if ((uintptr_t)list > highest) highest = (uintptr_t)list;
    free(list);
  }
  metric("highest_block", (double)highest);
  CHECK(ashlar_check() == 0);
  // All of it is one run again.
  unsigned char* block = malloc(3u << 30);
  REQUIRE(block);
  block[0] = block[(3u << 30) - 1] = 1;
  free(block);
}

CASE(B29) {
  // More than the default heap of 16 MiB.
  errno = 0;
  void* block = malloc(200 * MIB);
  CHECK(block == NULL);
  CHECK(errno == ENOMEM);
  CHECK(malloc(1000) != NULL);
}

extern char __heap_base;
CASE(B30) {
  // The maximum is the start plus one wasm page: what fits there is served.
  size_t served = 0;
  while (malloc(1000)) served += 1000;
  CHECK(errno == ENOMEM);
  uint64_t room = memory_bytes() - (uintptr_t)&__heap_base;
  metric("share_served", (double)served / (double)room);
  CHECK_THAT((double)served, >=, 0.9 * (double)room);
  CHECK(ashlar_check() == 0);
}
