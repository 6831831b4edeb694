// Field report, section D: alignment.
#include "cases.h"

#ifdef __EMSCRIPTEN__
void* emmalloc_aligned_realloc(void* block, size_t alignment, size_t bytes);
#endif

static void every_size_is_aligned(size_t alignment) {
  static void* block[64];
  for (size_t bytes = 0; bytes < 20000; bytes += bytes < 2200 ? 1 : 97) {
    void** place = &block[bytes % 64];
    free(*place);
    REQUIRE(*place = malloc(bytes));
    CHECK(is_aligned(*place, alignment));
    if (bytes % 3 == 0) {
      *place = realloc(*place, bytes + bytes / 3 + 1);
      CHECK(is_aligned(*place, alignment));
    }
  }
}
CASE(D42) { every_size_is_aligned(DEFAULT_ALIGNMENT); }

CASE(D43) {
  for (size_t bytes = 1; bytes < 3000; bytes += 11) {
    void* block = aligned_alloc(16, bytes);
    CHECK(block && is_aligned(block, 16));
    free(block);
  }
#ifdef __EMSCRIPTEN__
  // SIMD code there needs 16 and a realloc that keeps it.
  unsigned char* vector = aligned_alloc(32, 40);
  fill(vector, 40, 43);
  for (size_t bytes = 50; bytes < 300000; bytes *= 3) {
    vector = emmalloc_aligned_realloc(vector, 32, bytes);
    REQUIRE(vector);
    CHECK(is_aligned(vector, 32));
    CHECK(intact(vector, 40, 43));
    REQUIRE(malloc(24));
  }
  free(vector);
#else
  CHECK(is_aligned(malloc(24), 16));
#endif
}

CASE(D44) {
#ifdef __EMSCRIPTEN__
  CHECK(DEFAULT_ALIGNMENT == 8);
  every_size_is_aligned(8);
  // Eight is meant: sixteen would cost every 24-byte block a third more.
  CHECK_THAT(ashlar_good_size(24), <, 32);
#else
  CHECK(DEFAULT_ALIGNMENT == 16);
  every_size_is_aligned(16);
#endif
}

CASE(D45) {
  for (size_t alignment = 16; alignment <= 64; alignment *= 2) {
    for (size_t bytes = alignment; bytes <= 40 * alignment; bytes += alignment) {
      void* block = aligned_alloc(alignment, bytes);
      CHECK(block && is_aligned(block, alignment));
      CHECK(ashlar_usable_size(block) >= bytes);
      fill(block, bytes, (uint32_t)bytes);
      void* other = aligned_alloc(alignment, bytes);
      CHECK(other && is_aligned(other, alignment));
      fill(other, bytes, 1);
      CHECK(intact(block, bytes, (uint32_t)bytes));
      if (bytes % (3 * alignment)) free(block);
    }
  }
  CHECK(ashlar_check() == 0);
}

// At most size + alignment, and the skipped head serves other requests without growing.
static void one_aligned(size_t alignment, size_t bytes) {
  ashlar_set_growth(0);
  uint64_t before = top_bytes();
  void* block = NULL;
  REQUIRE(posix_memalign(&block, alignment, bytes) == 0);
  CHECK(is_aligned(block, alignment));
  uint64_t top = top_bytes();
  CHECK_THAT(top - before, <=, (uint64_t)bytes + alignment + 2 * PAGE_BYTES);
  uint64_t skipped = (uintptr_t)block - before;
  metric("skipped_bytes", (double)skipped);
  if (skipped > 32 * KIB && (uintptr_t)block > before) {
    REQUIRE(malloc((size_t)skipped / 2));
    CHECK_THAT(top_bytes(), ==, top);
  }
  CHECK(ashlar_check() == 0);
}
CASE(D46_1MiB) { one_aligned(1 * MIB, 32 * MIB); }
CASE(D46_4MiB) { one_aligned(4 * MIB, 32 * MIB); }

CASE(D48) {
  enum { count = 200 };
  static struct {
    unsigned char *before, *block, *after;
    size_t bytes;
  } set[count];
  random_state = 10363;
  for (uint32_t index = 0; index < count; index++) {
    size_t alignment = (size_t)32 << random_between(0, 8);
    set[index].bytes = random_between(1, 6000);
    REQUIRE(set[index].before = malloc(random_between(1, 3000)));
    REQUIRE(set[index].block = aligned_alloc(alignment, set[index].bytes));
    REQUIRE(set[index].after = malloc(random_between(1, 3000)));
    CHECK(is_aligned(set[index].block, alignment));
    fill(set[index].block, set[index].bytes, index);
  }
  for (uint32_t index = 0; index < count; index += 2) {
    free(set[index].before);
    free(set[index].after);
  }
  CHECK(ashlar_check() == 0);
  for (uint32_t index = 0; index < count; index++) {
    CHECK(intact(set[index].block, set[index].bytes, index));
    size_t kept = set[index].bytes;
    unsigned char* moved = realloc(set[index].block, kept + 5000);
    REQUIRE(moved);
    CHECK(intact(moved, kept, index));
    memset(moved, 0, kept + 5000);
    set[index].block = moved;
  }
  for (uint32_t index = 0; index < count; index++) free(set[index].block);
  CHECK(ashlar_check() == 0);
}

CASE(D49) {
  for (size_t alignment = 128 * KIB; alignment <= 4 * MIB; alignment *= 2) {
    for (size_t bytes = 100; bytes <= 300000; bytes += 149950) {
      unsigned char* block = aligned_alloc(alignment, bytes);
      REQUIRE(block);
      CHECK(is_aligned(block, alignment));
      memset(block, 0x49, ashlar_usable_size(block));
      if (bytes != 100) free(block);
    }
  }
  CHECK(ashlar_check() == 0);
}

CASE(D51) {
  void* block = aligned_alloc(16, 24);
  CHECK(block && is_aligned(block, 16));
  CHECK(EINVAL == 28);
  void* untouched = &block;
  CHECK(posix_memalign(&untouched, 3, 8) == EINVAL);
  CHECK(posix_memalign(&untouched, 0, 8) == EINVAL);
  CHECK(posix_memalign(&untouched, 2, 8) == EINVAL);
  CHECK(posix_memalign(&untouched, 24, 8) == EINVAL);
  CHECK(untouched == &block);
  errno = 0;
  CHECK(aligned_alloc(24, 48) == NULL);
  CHECK(errno == EINVAL);
}
