#include "page.h"

namespace ashlar {
namespace {

// Newton's iteration doubles the correct bits; an odd number is its own inverse modulo 8.
constexpr size_t inverse_of(size_t odd) {
  size_t inverse = odd;
  for (unsigned bits = 3; bits < word_bits; bits *= 2) {
    inverse = wrapping_multiply(inverse, wrapping_subtract(2, wrapping_multiply(odd, inverse)));
  }
  return inverse;
}
static_assert(wrapping_multiply(inverse_of(7), 7) == 1);

// Linked at a time: enough to make the slow path rare, without touching memory early.
constexpr size_t carve_bytes = 1024;

}  // namespace

void Page::set_up(Address page_start, size_t page_tiles, SizeClass c) {
  const size_t bytes = block_bytes_of(c);
  *this = Page{};
  start = page_start;
  shift = lowest_bit(bytes);
  inverse = inverse_of(bytes >> shift);
  capacity = uint32_t(page_payload_bytes(page_tiles) / bytes);
  class_index = uint8_t(c.index);
  tiles = uint8_t(page_tiles);
}

void Page::join(Page*& ring) {
  if (ring == nullptr) {
    ring = next = previous = this;
    return;
  }
  next = ring;
  previous = ring->previous;
  previous->next = ring->previous = this;
}

void Page::leave(Page*& ring) {
  previous->next = next;
  next->previous = previous;
  if (ring == this) ring = next == this ? nullptr : next;
}

bool Page::carve_more() {
  const size_t bytes = block_bytes();
  const size_t count = min(capacity - carved, max(carve_bytes / bytes, 2));
  const Address first = start + carved * bytes;
  // Backwards, so that the lowest address is handed out first.
  for (size_t i = count; i > 0; --i) push(first + (i - 1) * bytes);
  carved += uint32_t(count);
  return count != 0;
}

bool Page::is_free(Address b) const {
  for (Address f = free; f != 0; f = at<FreeBlock>(f).next) {
    if (f == b) return true;
  }
  return false;
}

Address Page::find_fault() const {
  uint32_t count = 0;
  for (Address b = free; b != 0; b = at<FreeBlock>(b).next) {
    if (index_of(b) >= carved || ++count > carved) return b;
    if constexpr (profile.catches_misuse) {
      if (at<FreeBlock>(b).tag != tag_of(b)) return b;
    }
  }
  const bool has_room = free != 0 || carved < capacity;
  const bool agrees = carved <= capacity && used() == carved - count && !(full && has_room);
  return agrees ? 0 : start;
}

}  // namespace ashlar
