// A program that uses, for its own things, names that allocators like to use (row F69). Were one of
// them the allocator's too, it would not link, or run something else.
#include "cases.h"

static unsigned called;
void* dlmalloc(size_t bytes);
void* dlmalloc(size_t bytes) {
  called++;
  return (void*)(uintptr_t)bytes;
}
void dlfree(void* block);
void dlfree(void* block) { called += block != NULL; }

// Functions and data of all sorts of names, each with a value that nobody else changes.
#define DATA(name) int name = 69;
/* clang-format does not settle on one layout of this. */
/* clang-format off */
#define EACH_NAME(X) \
  X(arena) X(heap) X(page) X(page_map) X(root) X(leaf) X(region) X(lock) X(stats) X(fault) \
  X(last_message) X(fingerprint) X(allocate) X(release) X(reallocate) X(usable_size) X(grow) \
  X(refill) X(size_class) X(class_of) X(free_list) X(used) X(take_memory) X(initial_memory) \
  X(write_error) X(stop) X(sbrk_ptr) X(profile) X(mi_malloc) X(je_malloc) X(tc_malloc) X(check)
/* clang-format on */
EACH_NAME(DATA)

CASE(F69) {
  void* volatile kept = dlmalloc(5);
  dlfree(kept);
  void* block = malloc(100);
  REQUIRE(block);
  CHECK((uintptr_t)kept == 5);
  fill(block, 100, 1);
  for (int index = 0; index < 3000; index++) free(malloc((size_t)index));
  CHECK(intact(block, 100, 1));
  CHECK_THAT(called, ==, 2);
#define UNTOUCHED(name) CHECK(name == 69);
  EACH_NAME(UNTOUCHED)
  CHECK(ashlar_check() == 0);
}
