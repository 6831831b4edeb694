// The C API: include/ashlar.h says what each function promises.
#include "ashlar.h"

#include "api.h"

using namespace ashlar;

extern "C" {

void* ashlar_malloc(size_t size) { return allocate(size); }

void* ashlar_calloc(size_t count, size_t size) { return allocate_zeroed(count, size); }

void* ashlar_realloc(void* block, size_t size) { return reallocate(block, size); }

void* ashlar_aligned_alloc(size_t alignment, size_t size) {
  if (!is_power_of_two(alignment)) {
    os::set_invalid_argument();
    return nullptr;
  }
  return allocate_aligned(alignment, size);
}

void ashlar_free(void* block) { release(block); }

size_t ashlar_usable_size(const void* block) { return usable_size(block); }

size_t ashlar_good_size(size_t size) { return Heap::good_bytes(size); }

int ashlar_reserve(size_t bytes) {
  const Guard guard;
  if (heap.reserve(bytes)) return 0;
  os::set_out_of_memory();
  return -1;
}

unsigned ashlar_set_growth(unsigned divisor) {
  const Guard guard;
  return arena.set_growth_divisor(divisor);
}

size_t ashlar_used_peak(void) {
  const Guard guard;
  return heap.used_peak_bytes();
}

void ashlar_stats(ashlar_stats_t* stats) {
  const Guard guard;
  heap.fill_in(*stats);
}

int ashlar_check(void) {
  const Guard guard;
  Address fault = arena.find_fault();
  if (fault == 0) fault = heap.find_fault();
  if (fault != 0) note_fault(Fault::corrupted_header, fault);
  return fault != 0;
}

const char* ashlar_last_message(void) { return last_message(); }

const char* ashlar_version(void) { return fingerprint; }

}  // extern "C"
