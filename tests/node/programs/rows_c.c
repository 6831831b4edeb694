// Field report, section C: sizes near 2 and 4 GiB, and overflow.
#include "cases.h"

#ifdef __EMSCRIPTEN__
#include <malloc.h>
#include <unistd.h>
#endif
#include <search.h>

#define GIB ((size_t)1 << 30)

CASE(C31) {
  // 0x10001 * 0x10000 is 0x10000 in 32 bits.
  errno = 0;
  CHECK(calloc(0x10001, 0x10000) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(calloc(0x10000, 0x10001) == NULL);
  CHECK(calloc(SIZE_MAX, SIZE_MAX) == NULL);
}

CASE(C32) { CHECK(hcreate((size_t)-1) == 0); }

CASE(C33) {
  errno = 0;
  CHECK(calloc(SIZE_MAX / 2, 4) == NULL);
  CHECK(errno == ENOMEM);
  errno = 0;
  CHECK(calloc(4, SIZE_MAX / 2) == NULL);
  CHECK(errno == ENOMEM);
}

static void one_block(size_t bytes) {
  unsigned char* block = malloc(bytes);
  REQUIRE(block);
  CHECK_THAT(ashlar_usable_size(block), >=, bytes);
  block[0] = 1;
  block[bytes / 2] = 2;
  block[bytes - 1] = 3;
  void* neighbour = malloc(1000);
  REQUIRE(neighbour);
  fill(neighbour, 1000, 34);
  CHECK(block[0] == 1 && block[bytes / 2] == 2 && block[bytes - 1] == 3);
  CHECK(ashlar_check() == 0);
  free(block);
  CHECK(intact(neighbour, 1000, 34));
  block = malloc(bytes);
  CHECK(block);
  free(block);
  CHECK(ashlar_check() == 0);
}
CASE(C34_2GiB) { one_block(2 * GIB); }
CASE(C34_3GiB) { one_block(3 * GIB); }
// What Emscripten's own limit and the program's data leave of 4 GiB, less the growth step.
CASE(C34_almost_4GiB) { one_block(4 * (GIB - 1) - 40 * MIB); }

// A block that cannot grow where it is, by so little that there would be room for a sum that
// wrapped.
CASE(grow_beyond_4GiB) {
  size_t const size = 4 * (GIB - 1) - 500 * MIB;
  unsigned char* const first = malloc(size);
  REQUIRE(first);
  REQUIRE(malloc(100 * KIB));
  first[0] = first[size - 1] = 77;
  errno = 0;
  CHECK(realloc(first, size + size / 16) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(first[0] == 77 && first[size - 1] == 77);
  CHECK(ashlar_check() == 0);
}

CASE(C35) {
  void* first = malloc(5 * (GIB / 2));
  REQUIRE(first);
  errno = 0;
  CHECK(malloc(5 * (GIB / 2)) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(malloc(1 * GIB) != NULL);
  CHECK(ashlar_check() == 0);
}

#ifdef __EMSCRIPTEN__
CASE(C38) {
  // The program moves the break up and down around our blocks; a block is never handed out twice.
  enum { count = 64 };
  static void* block[count];
  for (uint32_t index = 0; index < count; index++) {
    REQUIRE(sbrk((intptr_t)PAGE_BYTES) != (void*)-1);
    REQUIRE(sbrk(-(intptr_t)PAGE_BYTES) != (void*)-1);
    REQUIRE(block[index] = malloc(100 * KIB));
    fill(block[index], 100 * KIB, index);
  }
  for (uint32_t index = 0; index < count; index++) CHECK(intact(block[index], 100 * KIB, index));
  CHECK(ashlar_check() == 0);
}

CASE(C39) {
  // The header says which type the fields have; the archive was built with the same header's ABI.
  struct mallinfo before = mallinfo();
  void* block = malloc(1 * MIB);
  REQUIRE(block);
  struct mallinfo after = mallinfo();
  CHECK_THAT((size_t)after.uordblks, >=, (size_t)before.uordblks + 1 * MIB);
  CHECK_THAT((size_t)after.uordblks, <=, (size_t)before.uordblks + 1 * MIB + 64 * KIB);
  free(block);
  struct mallinfo freed = mallinfo();
  CHECK_THAT((size_t)freed.uordblks, ==, (size_t)before.uordblks);
  CHECK_THAT((size_t)freed.fordblks, >=, 1 * MIB);
}
#endif

CASE(C40) {
  // A block that ends at the very end of the address space.
  uint64_t top = memory_bytes();
  size_t rest = (size_t)(((uint64_t)1 << 32) - top);
  unsigned char* block = NULL;
  while (rest > 64 * KIB && !(block = malloc(rest))) rest -= 16;
  REQUIRE(block);
  metric("bytes_below_the_end", (double)(((uint64_t)1 << 32) - (uintptr_t)block - rest));
  size_t usable = ashlar_usable_size(block);
  CHECK_THAT((uint64_t)(uintptr_t)block + usable, <=, (uint64_t)1 << 32);
  block[usable - 1] = 7;
  CHECK(realloc(block, usable) == block);
  errno = 0;
  CHECK(realloc(block, usable + 1000) == NULL);
  CHECK(errno == ENOMEM);
  CHECK(block[usable - 1] == 7);
  CHECK(realloc(block, 1000) == block);
  CHECK(ashlar_check() == 0);
  free(block);
  CHECK(ashlar_check() == 0);
}
