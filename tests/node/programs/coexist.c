// Others take memory too: the program's own sbrk and memory.grow, the host's growth, in any order
// with ours. What they own keeps its pattern, and so does what we own.
#include "cases.h"

#include <unistd.h>

#ifdef __EMSCRIPTEN__
#include <emscripten.h>
#include <emscripten/heap.h>
void emscripten_notify_memory_growth(size_t memory_index);
#endif

enum { most = 600 };
static struct Region {
  unsigned char* at;
  size_t bytes;
  uint32_t seed;
} ours[most], theirs[most];
static size_t our_count, their_count;

static void take_ours(size_t bytes) {
  struct Region* region = &ours[our_count];
  REQUIRE(our_count < most);
  REQUIRE(region->at = malloc(bytes));
  region->bytes = bytes;
  region->seed = random_bits();
  fill(region->at, bytes, region->seed);
  our_count++;
}
static void free_ours(size_t index) {
  CHECK(intact(ours[index].at, ours[index].bytes, ours[index].seed));
  free(ours[index].at);
  ours[index] = ours[--our_count];
}
static void note_theirs(void* at, size_t bytes) {
  REQUIRE(their_count < most);
  // Fresh memory: nobody wrote here before the stranger got it.
  CHECK(all_bytes_are(at, bytes, 0));
  theirs[their_count] = (struct Region){at, bytes, random_bits()};
  fill(at, bytes, theirs[their_count++].seed);
}
static void all_intact(void) {
  for (size_t index = 0; index < our_count; index++) {
    CHECK(intact(ours[index].at, ours[index].bytes, ours[index].seed));
  }
  for (size_t index = 0; index < their_count; index++) {
    CHECK(intact(theirs[index].at, theirs[index].bytes, theirs[index].seed));
  }
  CHECK(ashlar_check() == 0);
}

// A stranger takes memory without asking anybody.
static void raw_grow(size_t pages) {
  size_t old = __builtin_wasm_memory_grow(0, pages);
  REQUIRE(old != (size_t)-1);
#ifdef __EMSCRIPTEN__
  emscripten_notify_memory_growth(0);
#endif
  note_theirs((void*)(old * PAGE_BYTES), pages * PAGE_BYTES);
}

CASE(grow_before_first) {
  random_state = 64;
  raw_grow(4);
  take_ours(100000);
  for (int index = 0; index < 100; index++) take_ours(random_between(1, 5000));
  take_ours(2 * MIB);
  all_intact();
}

CASE(grow_between) {
  random_state = 65;
  for (int turn = 0; turn < 1500; turn++) {
    uint32_t kind = random_bits() % 20;
    if (kind == 0 && their_count < 70) {
      raw_grow(random_between(1, 3));
    } else if (our_count < 50 || (kind < 11 && our_count < 500)) {
      take_ours(kind == 1 ? random_between(60000, 300000) : random_between(1, 6000));
    } else {
      free_ours(random_bits() % our_count);
    }
    if (turn % 300 == 299) all_intact();
  }
  while (our_count) free_ours(0);
  all_intact();
}

// The same with the break. wasi-libc's sbrk knows only whole pages upward.
CASE(sbrk_between) {
  random_state = 66;
  for (int turn = 0; turn < 1500; turn++) {
    uint32_t kind = random_bits() % 20;
    if (kind == 0 && their_count < 70) {
#ifdef __EMSCRIPTEN__
      // Odd lengths: the break is then not aligned to anything but 4.
      size_t bytes = random_between(1, 9000);
#else
      size_t bytes = random_between(1, 3) * PAGE_BYTES;
#endif
      void* at = sbrk((intptr_t)bytes);
      REQUIRE(at != (void*)-1);
      note_theirs(at, bytes);
    } else if (our_count < 50 || (kind < 11 && our_count < 500)) {
      take_ours(kind == 1 ? random_between(60000, 300000) : random_between(1, 6000));
    } else {
      free_ours(random_bits() % our_count);
    }
    if (turn % 300 == 299) all_intact();
  }
  while (our_count) free_ours(0);
  all_intact();
}

CASE(sbrk_before_first) {
  random_state = 67;
  void* at = sbrk((intptr_t)PAGE_BYTES);
  REQUIRE(at != (void*)-1);
  note_theirs(at, PAGE_BYTES);
  for (int index = 0; index < 100; index++) take_ours(random_between(1, 5000));
  take_ours(1 * MIB);
  all_intact();
}

// The host grows memory before the start and between these two.
CASE(host_first) {
  random_state = 68;
  for (int index = 0; index < 50; index++) take_ours(random_between(1, 5000));
  take_ours(300 * KIB);
  all_intact();
}
CASE(host_second) {
  for (int index = 0; index < 50; index++) take_ours(random_between(1, 5000));
  take_ours(2 * MIB);
  all_intact();
}

// A program that gives back what it took: in order, and after we took memory behind it.
CASE(never_shrinks) {
  // Everything freed: what was taken is still ours, nobody else is handed it.
  random_state = 70;
  uint64_t top = top_bytes();
  for (int turn = 0; turn < 20; turn++) {
    while (our_count < 100) take_ours(random_between(1, 60000));
    CHECK_THAT(top_bytes(), >=, top);
    top = top_bytes();
    while (our_count) free_ours(our_count / 2);
    CHECK_THAT(top_bytes(), >=, top);
  }
}

#ifdef __EMSCRIPTEN__
CASE(sbrk_down) {
  random_state = 69;
  for (int turn = 0; turn < 40; turn++) {
    size_t bytes = random_between(1, 3) * PAGE_BYTES;
    unsigned char* at = sbrk((intptr_t)bytes);
    REQUIRE(at != (void*)-1);
    memset(at, 0x77, bytes);
    REQUIRE(sbrk(-(intptr_t)bytes) != (void*)-1);
    take_ours(random_between(1, 200000));
  }
  // Too late: our memory lies above. Whatever sbrk answers, our blocks stay ours.
  for (int turn = 0; turn < 10; turn++) {
    unsigned char* at = sbrk((intptr_t)PAGE_BYTES);
    REQUIRE(at != (void*)-1);
    take_ours(300 * KIB);
    sbrk(-(intptr_t)PAGE_BYTES);
    take_ours(300 * KIB);
    take_ours(40 * KIB);
  }
  all_intact();
}

CASE(brk_up) {
  random_state = 71;
  for (int turn = 0; turn < 20; turn++) {
    char* old = sbrk(0);
    size_t bytes = random_between(1, 100000) & ~(size_t)15;
    REQUIRE(brk(old + bytes) == 0);
    note_theirs(old, bytes);
    take_ours(random_between(1, 200000));
  }
  CHECK(sbrk(0) == (void*)*emscripten_get_sbrk_ptr());
  all_intact();
}

CASE(resize_heap) {
  // Growing by Emscripten's own call takes nothing; all of it must come to use.
  random_state = 72;
  for (int turn = 0; turn < 5; turn++) {
    take_ours(300 * KIB);
    REQUIRE(emscripten_resize_heap(emscripten_get_heap_size() + 1 * MIB));
  }
  all_intact();
}
#endif
