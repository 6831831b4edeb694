#include "page.h"

namespace ashlar {
namespace {

// Linked at a time: enough to make the slow path rare, without touching memory early.
constexpr size_t carve_bytes = 4096;

}  // namespace

void Page::set_up(Address page_start, size_t page_tiles, SizeClass c) {
  const size_t bytes = block_bytes_of(c);
  *this = Page{};
  start = page_start;
  multiplier = multiplier_of(bytes);
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
  const size_t count = min(capacity - carved, carve_bytes / bytes);
  if (count == 0) return false;
  Address b = start + carved * bytes;
  free = b;
  carved += uint32_t(count);
  limit = carved * wrapping_multiply(multiplier, bytes);
  for (size_t left = count - 1; left != 0; --left, b += bytes) {
    write_free(b, b + bytes, fresh_tag_of(b));
  }
  write_free(b, 0, fresh_tag_of(b));
  return true;
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
    if (!is_carved(b) || ++count > carved) return b;
    if constexpr (profile.catches_misuse) {
      if ((at<FreeBlock>(b).tag | 1) != tag_of(b)) return b;
    }
  }
  const bool has_room = free != 0 || carved < capacity;
  const bool agrees = carved <= capacity && used() == carved - count && !(full && has_room);
  return agrees ? 0 : start;
}

}  // namespace ashlar
