// operator new, without exceptions (rows B22, B23, B25), and with them where the target has them.
#include <cstdint>
#include <new>

#include "cases.h"

// Not a constant: the compiler may refuse or drop what it can see through.
static size_t volatile huge = static_cast<size_t>(-1) - 70000;
static size_t volatile mostly = 3700000000u;

static void* volatile kept;

CASE(B22_new) {
  // Must not return: a null result would be written to.
  kept = new char[huge];
  metric("survived", 1);
}

CASE(B23_nothrow) {
  kept = new (std::nothrow) uint8_t[mostly];
  CHECK(kept == nullptr);
  kept = new (std::nothrow) uint8_t[huge];
  CHECK(kept == nullptr);
  struct alignas(128) Wide {
    char bytes[128];
  };
  kept = new (std::nothrow) Wide[huge / 256];
  CHECK(kept == nullptr);
  kept = new (std::nothrow) Wide;
  CHECK(kept != nullptr && is_aligned(kept, 128));
  delete static_cast<Wide*>(kept);
  CHECK(ashlar_check() == 0);
}

// A handler that allocates itself, and gives back a reserve at its third call.
static int handler_calls;
static void* reserve_block;
static void handler() {
  if (++handler_calls > 100) std::set_new_handler(nullptr);
  CHECK(malloc(4 * MIB) == nullptr);
  free(malloc(10));
  if (handler_calls == 3) free(reserve_block);
}
CASE(B25_new_handler) {
  reserve_block = malloc(5 * MIB);
  REQUIRE(reserve_block);
  for (size_t bytes = 4 * MIB; bytes >= 64 * KIB; bytes /= 2) {
    while (malloc(bytes)) {
    }
  }
  std::set_new_handler(handler);
  kept = new char[4 * MIB + 512 * KIB];
  CHECK(kept != nullptr);
  CHECK_THAT(handler_calls, ==, 3);
  CHECK(ashlar_check() == 0);
}

CASE(new_forms) {
  struct alignas(64) Line {
    char bytes[200];
  };
  ashlar_stats_t before, after;
  ashlar_stats(&before);
  for (int turn = 0; turn < 100; turn++) {
    auto* line = new Line;
    kept = line;
    CHECK(is_aligned(line, 64));
    auto* lines = new Line[3];
    kept = lines;
    CHECK(is_aligned(lines, 64));
    auto* number = new int(3);
    kept = number;
    auto* numbers = new int[100]();
    kept = numbers;
    CHECK(all_bytes_are(numbers, 400, 0));
    delete line;
    delete[] lines;
    delete number;
    delete[] numbers;
  }
  ashlar_stats(&after);
  CHECK_THAT(after.allocations - before.allocations, ==, 400);
  CHECK_THAT(after.live_blocks, ==, before.live_blocks);
}

#ifdef __cpp_exceptions
CASE(B22_bad_alloc) {
  bool caught = false;
  try {
    kept = new char[huge];
  } catch (const std::bad_alloc&) {
    caught = true;
  }
  CHECK(caught);
  caught = false;
  struct alignas(256) Wide {
    char bytes[256];
  };
  try {
    kept = new Wide[huge / 512];
  } catch (const std::bad_alloc&) {
    caught = true;
  }
  CHECK(caught);
  CHECK(new char[100] != nullptr);
  CHECK(ashlar_check() == 0);
}
#endif
