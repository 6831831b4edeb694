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
#define EACH_NAME(do) \
  do(arena) do(heap) do(page) do(page_map) do(root) do(leaf) do(region) do(lock) do(stats) do(fault) \
  do(last_message) do(fingerprint) do(allocate) do(release) do(reallocate) do(usable_size) do(grow) \
  do(refill) do(size_class) do(class_of) do(free_list) do(used) do(take_memory) do(initial_memory) \
  do(write_error) do(stop) do(sbrk_ptr) do(profile) do(mi_malloc) do(je_malloc) do(tc_malloc) do(check)
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
