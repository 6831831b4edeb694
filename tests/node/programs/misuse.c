// One misuse each: the state a block is in, what is wrong with the pointer, and the call that gets
// it.
#include "cases.h"

#ifdef __EMSCRIPTEN__
#include <unistd.h>
#endif

// The numbers are misuse.test.mjs's as well.
enum State { alone, neighbours, full_page, after_realloc, cold, large, large_last };
enum Fault {
  freed,          // just now
  freed_earlier,  // and another block after it
  inside,         // at the next aligned address
  inside_odd,
  inside_last,  // the last usable byte
  static_array,
  stack_array,
  near_null,
  beyond_memory,
  strangers_page,  // memory that the program itself took from the system
  never_handed_out
};
enum Call { call_free, call_realloc, call_realloc_zero, call_usable_size };

enum { count = 2000, block_bytes = 64 };
static unsigned char* block[count];
// A chosen block and one that may be freed beside it; nothing touches it in the arena.
static unsigned char *chosen, *other;

static void make_state(enum State state) {
  switch (state) {
    case cold:
      malloc(40);
      chosen = malloc(40);
      malloc(40);
      other = malloc(40);
      malloc(40);
      return;
    case large:
      malloc(3000);
      chosen = malloc(100 * KIB);
      malloc(3000);
      other = malloc(50 * KIB);
      malloc(3000);
      return;
    case large_last:
      other = malloc(50 * KIB);
      malloc(3000);
      chosen = malloc(3 * MIB);
      return;
    default: break;
  }
  for (int index = 0; index < count; index++) block[index] = malloc(block_bytes);
  chosen = block[count / 2];
  other = block[count / 2 + 10];
  if (state == alone) {
    for (int index = 0; index < count; index++) {
      if (block[index] != chosen) free(block[index]);
    }
    other = malloc(3000);
  } else if (state == neighbours) {
    free(block[count / 2 + 20]);
  } else if (state == after_realloc) {
    unsigned char* small = malloc(16);
    chosen = realloc(small, block_bytes);
    for (int index = 0; index < 100; index++) malloc(block_bytes);
  }
}

static int is_block(uintptr_t address) {
  for (int index = 0; index < count; index++) {
    if ((uintptr_t)block[index] == address) return 1;
  }
  return 0;
}

// In a page with room for `ahead` blocks more the last of these. It was never handed out; the first
// of them may be in the page's free list already, like blocks that were. In the arena simply memory
// that is ours and free.
enum { ahead = 24 };
static void* find_never_handed_out(enum State state) {
  if (state != neighbours && state != full_page) {
    return (void*)((uintptr_t)(top_bytes() - 64) & ~(uintptr_t)15);
  }
  for (int tries = 0; tries < 200; tries++) {
    for (int index = 0; index < count; index++) {
      uintptr_t last = (uintptr_t)block[index], next = last + block_bytes;
      // Two before it, so that it is a page's row and not a single block of the arena.
      int found = is_block(last - block_bytes) && is_block(last - 2 * block_bytes);
      found = found && (next + (ahead + 1) * block_bytes) / 4096 == (last - 2 * block_bytes) / 4096;
      for (int step = 0; found && step <= ahead; step++) {
        found = !is_block(next + (uintptr_t)step * block_bytes);
      }
      if (found) return (void*)(next + ahead * block_bytes);
    }
    // All pages are full: one more block opens another; it takes the place of one that stays live.
    block[tries] = malloc(block_bytes);
  }
  // The arena alone, where blocks have headers between them.
  return profile_is("small") ? (void*)((uintptr_t)(top_bytes() - 64) & ~(uintptr_t)15) : NULL;
}

static unsigned char in_data[256] __attribute__((aligned(64))) = {1};

__attribute__((used, export_name("case_misuse"))) void case_misuse(int state, int fault, int call);
void case_misuse(int state, int fault, int call) {
  unsigned char on_stack[256] __attribute__((aligned(64)));
  memset(on_stack, 0, sizeof on_stack);
  make_state((enum State)state);
  REQUIRE(chosen && other);
  void* pointer = chosen;
  switch ((enum Fault)fault) {
    case freed: free(chosen); break;
    case freed_earlier:
      free(chosen);
      free(other);
      break;
    case inside: pointer = chosen + DEFAULT_ALIGNMENT; break;
    case inside_odd: pointer = chosen + 1; break;
    case inside_last: pointer = chosen + ashlar_usable_size(chosen) - 1; break;
    case static_array: pointer = in_data + 64; break;
    case stack_array: pointer = on_stack + 64; break;
    case near_null: pointer = (void*)16; break;
    case beyond_memory: pointer = (void*)(uintptr_t)(memory_bytes() + 64); break;
    case strangers_page:
#ifdef __EMSCRIPTEN__
      pointer = (unsigned char*)sbrk(65536) + 4096;
#else
      pointer = (void*)(__builtin_wasm_memory_grow(0, 1) * PAGE_BYTES + 4096);
#endif
      malloc(1 * MIB);
      break;
    case never_handed_out: pointer = find_never_handed_out((enum State)state); break;
  }
  REQUIRE(pointer);
  metric("address", (double)(uintptr_t)pointer);
  switch ((enum Call)call) {
    case call_free: free(pointer); break;
    case call_realloc: realloc(pointer, 200); break;
    case call_realloc_zero: realloc(pointer, 0); break;
    case call_usable_size: metric("usable", (double)ashlar_usable_size(pointer)); break;
  }
  metric("survived", 1);
}

// What a program may do with the bytes of a block without being suspected: keep what a free block
// held at the same place, all of it.
CASE(no_false_alarm) {
  static const size_t sizes[] = {16, 24, 40, 64, 200, 1000, 3000, 100000};
  static unsigned char copy[256];
  for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
    size_t bytes = sizes[index], kept = bytes < sizeof copy ? bytes : sizeof copy;
    // Hot and cold, with and without live neighbours.
    for (int turn = 0; turn < 1200; turn++) {
      unsigned char* first = malloc(bytes);
      REQUIRE(first);
      free(first);
      // After free the bytes are the allocator's; reading them is what a program with a dangling
      // pointer does, and what reused memory brings into the next block anyway.
      memcpy(copy, first, kept);
      unsigned char* second = malloc(bytes);
      if (second == first) memcpy(second, copy, kept);
      CHECK(ashlar_usable_size(second) >= bytes);
      second = realloc(second, bytes);
      if (turn % 3) free(second);
    }
  }
  CHECK(ashlar_check() == 0);
  CHECK(strcmp(ashlar_last_message(), "") == 0);
}

// Each block's bytes all alike, every word of it another block's address: no value is suspicious.
CASE(no_suspicious_value) {
  for (unsigned value = 0; value < 256; value++) {
    for (size_t bytes = 8; bytes < 5000; bytes = bytes * 2 + 8) {
      unsigned char* first = malloc(bytes);
      uintptr_t* second = malloc(bytes);
      REQUIRE(first && second);
      memset(first, (int)value, ashlar_usable_size(first));
      for (size_t word = 0; word < bytes / sizeof *second; word++)
        second[word] = (uintptr_t)first + word;
      free(first);
      free(second);
    }
  }
  CHECK(ashlar_check() == 0);
}

// ashlar_check names a fault and returns.
CASE(check_returns) {
  unsigned char* first = malloc(3000);
  unsigned char* second = malloc(3000);
  REQUIRE(first && second);
  CHECK(ashlar_check() == 0);
  // Over the end of one block, far enough to hit the next one's header wherever that is.
  unsigned char* low = first < second ? first : second;
  size_t usable = ashlar_usable_size(low);
  memset(low + usable, 0xff, 24);
  CHECK(ashlar_check() == 1);
  CHECK(strncmp(ashlar_last_message(), "ashlar: ", 8) == 0);
}
