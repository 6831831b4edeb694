// dlmalloc's calls for many blocks at once. Each block can be freed by itself, as with dlmalloc.
// Built on the names that a program may replace (see override_align.cc).
#include "os.h"
#include "override_names.h"

extern "C" void* malloc(size_t size);
extern "C" void* calloc(size_t count, size_t size);
extern "C" void free(void* block);

namespace {

// Fills `blocks`, or an array of its own when that is null, with what `allocate_one(i)` returns:
// all of them or none.
template <class AllocateOne>
void** allocate_all(size_t count, void** blocks, AllocateOne allocate_one) {
  void** array = blocks;
  if (array == nullptr) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(void*), &bytes)) {
      ashlar::os::set_out_of_memory();
      return nullptr;
    }
    array = static_cast<void**>(malloc(bytes));
    if (array == nullptr) return nullptr;
  }
  for (size_t i = 0; i < count; ++i) {
    array[i] = allocate_one(i);
    if (array[i] != nullptr) continue;
    while (i > 0) free(array[--i]);
    if (blocks == nullptr) free(array);
    return nullptr;
  }
  return array;
}

}  // namespace

ASHLAR_EXTRA_NAME void** independent_calloc(size_t count, size_t size, void** blocks) {
  return allocate_all(count, blocks, [=](size_t) { return calloc(1, size); });
}

ASHLAR_EXTRA_NAME void** independent_comalloc(size_t count, size_t* sizes, void** blocks) {
  return allocate_all(count, blocks, [=](size_t i) { return malloc(sizes[i]); });
}

// The number of blocks that could not be freed: a block that is not live stops the program.
ASHLAR_EXTRA_NAME size_t bulk_free(void** blocks, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    free(blocks[i]);
    blocks[i] = nullptr;
  }
  return 0;
}
