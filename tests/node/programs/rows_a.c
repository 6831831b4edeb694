// Field report, section A: memory that only grows, fragmentation, how memory grows.
#include "cases.h"

#ifdef __EMSCRIPTEN__
#include <sys/mman.h>
#endif

// Sixteenths are the default growth step, and memory is taken in whole wasm pages.
static uint64_t with_growth_step(uint64_t bytes) { return bytes + bytes / 16 + 2 * PAGE_BYTES; }

CASE(A1) {
  enum { rounds = 300, per_round = 200, survivors = 500 };
  static struct {
    void* block;
    size_t bytes;
  } kept[survivors], round[per_round];
  random_state = 6736;
  size_t live = 0, peak = 0, oldest = 0;
  uint64_t before = top_bytes();
  for (int turn = 0; turn < rounds; turn++) {
    for (int index = 0; index < per_round; index++) {
      size_t bytes = index % 64 == 63 ? random_between(10 * KIB, 400 * KIB)
                     : index == 100   ? 1 * MIB
                                      : random_between(16, 512);
      round[index].block = malloc(bytes);
      REQUIRE(round[index].block);
      round[index].bytes = bytes;
      live += bytes;
    }
    if (live > peak) peak = live;
    for (int index = 0; index < per_round; index++) {
      if (index == turn % 61 || index == 64 + turn % 31) {
        free(kept[oldest].block);
        live -= kept[oldest].bytes;
        kept[oldest].block = round[index].block;
        kept[oldest].bytes = round[index].bytes;
        oldest = (oldest + 1) % survivors;
      } else {
        free(round[index].block);
        live -= round[index].bytes;
      }
    }
  }
  double taken = (double)(top_bytes() - before);
  metric("taken_per_peak_live", taken / (double)peak);
  CHECK_THAT(taken, <=, 2.0 * (double)peak);
  CHECK(ashlar_check() == 0);
}

CASE(A2) {
  // Capacities grow by half: all the predecessors together are twice the last buffer, so an
  // allocator that never joins them needs three times it.
  random_state = 3661;
  uint64_t before = top_bytes();
  size_t capacity = 1000;
  unsigned char* vector = malloc(capacity);
  while (capacity < 100000000) {
    size_t next = capacity + capacity / 2;
    unsigned char* larger = malloc(next);
    REQUIRE(larger);
    memcpy(larger, vector, capacity);
    free(vector);
    vector = larger;
    capacity = next;
    for (int pins = 0; pins < 200; pins++) REQUIRE(malloc(random_between(16, 200)));
  }
  double taken = (double)(top_bytes() - before);
  metric("taken_per_final_size", taken / (double)capacity);
  CHECK_THAT(taken, <, 2.5 * (double)capacity);
}

CASE(A3) {
  enum { count = 100 };
  static void* block[count];
  for (int turn = 0; turn < 2; turn++) {
    uint64_t before = top_bytes();
    for (int index = 0; index < count; index++) REQUIRE(block[index] = malloc(1 * MIB));
    if (turn == 1) CHECK_THAT(top_bytes(), ==, before);
    for (int index = 0; index < count; index++) free(block[index]);
  }
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  CHECK_THAT(stats.live_blocks, ==, 0);
  CHECK_THAT(stats.free_bytes, >=, (size_t)count * MIB);
  CHECK_THAT(stats.largest_free_bytes, >=, (size_t)count * MIB);
}

CASE(A4) {
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  CHECK_THAT(stats.committed_bytes, <=, 2 * PAGE_BYTES);
  // A divisor of 2 takes half of what is held in advance; 0 takes nothing in advance.
  CHECK(ashlar_set_growth(0) == 16);
  REQUIRE(malloc(8 * MIB));
  uint64_t exact = top_bytes();
  REQUIRE(malloc(40 * KIB));
  REQUIRE(malloc(40 * KIB));
  CHECK_THAT(top_bytes() - exact, <=, 2 * PAGE_BYTES);
  CHECK(ashlar_set_growth(2) == 0);
  uint64_t before = top_bytes();
  for (int blocks = 0; blocks < 3; blocks++) REQUIRE(malloc(64 * KIB));
  CHECK_THAT(top_bytes() - before, >=, 4 * MIB);
}

CASE(A6_free) {
  // A buffer one wasm page longer at each step; the one before is freed after the copy. Taking
  // each buffer as a region of its own needs the sum, 5050 pages; two buffers live are 199.
  enum { steps = 100 };
  uint64_t before = top_bytes();
  unsigned char* buffer = NULL;
  for (size_t step = 1; step <= steps; step++) {
    unsigned char* larger = malloc(step * PAGE_BYTES);
    REQUIRE(larger);
    if (buffer) memcpy(larger, buffer, (step - 1) * PAGE_BYTES);
    free(buffer);
    buffer = larger;
  }
  uint64_t pages = (top_bytes() - before) / PAGE_BYTES;
  metric("pages", (double)pages);
  CHECK_THAT(pages, <=, 350);
}

CASE(A6_realloc) {
  // The same with realloc: the last block only ever extends.
  enum { steps = 100 };
  uint64_t before = top_bytes();
  unsigned char* buffer = malloc(PAGE_BYTES);
  unsigned char* first = buffer;
  fill(buffer, PAGE_BYTES, 51);
  for (size_t step = 2; step <= steps; step++) {
    buffer = realloc(buffer, step * PAGE_BYTES);
    REQUIRE(buffer == first);
  }
  CHECK(intact(buffer, PAGE_BYTES, 51));
  CHECK_THAT(top_bytes() - before, <=, with_growth_step(steps * PAGE_BYTES));
}

CASE(A10) {
  // Runs to the end of memory: NULL and ENOMEM, not a trap.
  size_t blocks = 0;
  errno = 0;
  while (malloc(1 * MIB)) blocks++;
  CHECK(errno == ENOMEM);
  metric("mebibytes_served", (double)blocks);
  CHECK_THAT(blocks, >=, 8);
}

CASE(A11) {
  uint64_t first = 0;
  for (int turn = 0; turn < 1000; turn++) {
    volatile unsigned char* block = malloc(100 * MIB);
    REQUIRE(block);
    for (size_t at = 0; at < 100 * MIB; at += 64 * KIB) block[at] = 1;
    free((void*)block);
    if (turn == 0) first = top_bytes();
  }
  CHECK_THAT(top_bytes(), ==, first);
  CHECK_THAT(first, <=, with_growth_step(101 * MIB));
}

CASE(A12) {
  enum { count = 500 };
  static void* block[count];
  ashlar_stats_t start, full, after;
  ashlar_stats(&start);
  random_state = 2241;
  size_t usable = 0;
  for (int index = 0; index < count; index++) {
    block[index] = malloc(index % 100 == 0 ? 300 * KIB : random_between(1, 2000));
    REQUIRE(block[index]);
    usable += ashlar_usable_size(block[index]);
  }
  ashlar_stats(&full);
  CHECK_THAT(full.live_blocks - start.live_blocks, ==, count);
  CHECK_THAT(full.live_bytes - start.live_bytes, ==, usable);
  CHECK_THAT(full.allocations - start.allocations, ==, count);
  CHECK_THAT(full.frees, ==, start.frees);
  CHECK_THAT(full.committed_bytes, >=, full.live_bytes + full.free_bytes);
  CHECK_THAT(full.committed_bytes, <=, memory_bytes());
  CHECK_THAT(full.used_peak_bytes, >=, full.live_bytes);
  CHECK_THAT(full.used_peak_bytes, <=, full.committed_bytes);
  CHECK_THAT(full.largest_free_bytes, <=, full.free_bytes);
  for (int index = 0; index < count; index++) free(block[index]);
  ashlar_stats(&after);
  CHECK_THAT(after.live_blocks, ==, start.live_blocks);
  CHECK_THAT(after.live_bytes, ==, start.live_bytes);
  CHECK_THAT(after.frees - start.frees, ==, count);
  CHECK_THAT(after.used_peak_bytes, ==, full.used_peak_bytes);
  CHECK_THAT(after.committed_bytes, ==, full.committed_bytes);
  // One of the five large blocks alone leaves a run of its size.
  CHECK_THAT(after.largest_free_bytes, >=, 300 * KIB);
  CHECK_THAT(ashlar_used_peak(), ==, after.used_peak_bytes);
}

// How often memory was taken while `bytes` were handed out in pieces of 1 KiB.
static unsigned grows(size_t bytes) {
  unsigned count = 0;
  uint64_t top = top_bytes();
  for (size_t done = 0; done < bytes; done += KIB) {
    if (!malloc(KIB)) return 1u << 30;
    uint64_t now = top_bytes();
    if (now != top) count++;
    top = now;
  }
  return count;
}

CASE(A13) {
  // From 16 wasm pages on every step is a sixteenth: log(1024 / 16) / log(17 / 16) = 69 steps up to
  // 64 MiB, 16 single pages before, some more for rounding down to whole pages.
  ashlar_stats_t stats;
  uint64_t before = top_bytes();
  unsigned first = grows(64 * MIB);
  CHECK_THAT(first, <=, 110);
  ashlar_stats(&stats);
  metric("grows_to_64_MiB", first);
  CHECK_THAT(stats.grow_count, >=, first);
  CHECK_THAT(stats.grow_count, <=, first + 3);
  CHECK_THAT(top_bytes() - before, <=, (uint64_t)(64 * MIB * 1.17));
  // Doubling: log(2) / log(17 / 16) = 11.4.
  unsigned second = grows(64 * MIB);
  metric("grows_to_128_MiB", second);
  CHECK_THAT(second, <=, 14);
}

CASE(A13_tuned) {
  ashlar_set_growth(4);
  unsigned quarter = grows(64 * MIB);
  // log(1024 / 4) / log(5 / 4) = 25, 4 single pages before.
  CHECK_THAT(quarter, <=, 36);
  ashlar_set_growth(0);
  unsigned exact = grows(64 * MIB);
  CHECK_THAT(exact, >=, 500);
  metric("grows_by_quarters", quarter);
  metric("grows_exact", exact);
}

CASE(A15) {
  uint64_t before = top_bytes(), memory = memory_bytes();
  for (int blocks = 0; blocks < 100; blocks++) REQUIRE(malloc(100));
  metric("bytes_taken_for_10_KB", (double)(top_bytes() - before));
  CHECK_THAT(top_bytes() - before, <=, 2 * PAGE_BYTES);
  CHECK_THAT(memory_bytes() - memory, <=, 2 * PAGE_BYTES);
}

CASE(A16) {
  // A sub-allocator takes 64 MiB in aligned chunks and gives all back; one big block must fit
  // there.
  enum { count = 1024 };
  static void* chunk[count];
  for (int index = 0; index < count; index++) {
    REQUIRE(posix_memalign(&chunk[index], 64 * KIB, 64 * KIB) == 0);
  }
  uint64_t full = top_bytes();
  for (int index = 0; index < count; index++) free(chunk[index]);
  REQUIRE(malloc(60 * MIB));
  CHECK_THAT(top_bytes(), ==, full);
}

#ifdef __EMSCRIPTEN__
CASE(A16_mmap) {
  enum { count = 256 };
  static void* chunk[count];
  for (int index = 0; index < count; index++) {
    chunk[index] =
        mmap(NULL, 256 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(chunk[index] != MAP_FAILED);
    CHECK(is_aligned(chunk[index], PAGE_BYTES));
    CHECK(all_bytes_are(chunk[index], 256 * KIB, 0));
    memset(chunk[index], 0xee, 256 * KIB);
  }
  uint64_t full = top_bytes();
  for (int index = 0; index < count; index++) CHECK(munmap(chunk[index], 256 * KIB) == 0);
  // Reused memory is zero again.
  unsigned char* again =
      mmap(NULL, 256 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(again != MAP_FAILED);
  CHECK(all_bytes_are(again, 256 * KIB, 0));
  CHECK(munmap(again, 256 * KIB) == 0);
  REQUIRE(malloc(60 * MIB));
  CHECK_THAT(top_bytes(), ==, full);
  CHECK(ashlar_check() == 0);
}
#endif

CASE(A17) {
  // Blocks that are aligned to their own size: one alignment of loss in all, not one per block.
  enum { count = 4 };
  uint64_t before = top_bytes();
  void* block[count];
  for (int index = 0; index < count; index++) {
    REQUIRE(posix_memalign(&block[index], 8 * MIB, 8 * MIB) == 0);
    CHECK(is_aligned(block[index], 8 * MIB));
  }
  // Headers stand before the blocks, so whole multiples never touch: one more alignment per block
  // is what the layout costs at most, and heads and tails go back for other requests.
  metric("mebibytes_for_32", (double)(top_bytes() - before) / (double)MIB);
  uint64_t top = top_bytes();
  CHECK_THAT(top - before, <=, (uint64_t)(2 * count) * 8 * MIB + 8 * MIB);
  for (int index = 0; index < count - 1; index++) REQUIRE(malloc(7 * MIB));
  CHECK_THAT(top_bytes(), ==, top);
}

CASE(A18) {
  // Big aligned blocks, used, freed and used again, shortened and lengthened in place.
  unsigned char* block = aligned_alloc(2 * MIB, 2 * MIB);
  REQUIRE(block);
  memset(block, 0xff, 2 * MIB);
  uint64_t top = top_bytes();
  CHECK(realloc(block, 1 * MIB) == block);
  CHECK(all_bytes_are(block, 1 * MIB, 0xff));
  // The tail serves others, without growing.
  void* tail = malloc(900 * KIB);
  CHECK_THAT(top_bytes(), ==, top);
  free(tail);
  CHECK(realloc(block, 2 * MIB) == block);
  CHECK(all_bytes_are(block, 1 * MIB, 0xff));
  CHECK_THAT(top_bytes(), ==, top);
  free(block);
  void* again = NULL;
  CHECK(posix_memalign(&again, 2 * MIB, 2 * MIB) == 0);
  CHECK_THAT(top_bytes(), ==, top);
  free(again);
  unsigned char* zeroed = calloc(2 * MIB, 1);
  REQUIRE(zeroed);
  CHECK(all_bytes_are(zeroed, 2 * MIB, 0));
}
