// What is wrong: with a pointer, and, for ashlar_check(), with any structure. Reads only; never
// stops the program.
#include "heap.h"

namespace ashlar {

// The program is about to stop: walks the region to the block that holds `p`.
Fault Arena::fault_at(Address p) const {
  const Region* const found = region_of(p);
  if (found == nullptr) return Fault::foreign_pointer;
  const Region& region = *found;
  Address b = region.first;
  for (;;) {
    const size_t size = block::size_of(b);
    if (!is_sound_size(size, b, region)) return Fault::corrupted_header;
    if (p - b < size) break;
    b += size;
  }
  if (!block::is_in_use(b)) return Fault::double_free;
  if (!block::should_be_sealed(b)) return Fault::foreign_pointer;
  return p == b ? Fault::corrupted_header : Fault::interior_pointer;
}

// Every block of a region: sizes that lead from one to the next, flags and footers that agree with
// the neighbours'.
Address Arena::find_fault_in(const Region& region, size_t& free_seen) const {
  bool previous_free = false;
  Address b = region.first;
  while (b != region.end) {
    const size_t size = block::size_of(b);
    if (!is_sound_size(size, b, region)) return b;
    if (block::is_previous_in_use(b) == previous_free) return b;
    const bool is_free = !block::is_in_use(b);
    if (is_free) {
      if (previous_free || block::header(b) != (size | block::previous_in_use)) return b;
      if (b == rest_) break;
      if (block::previous_free_size(b + size) != size) return b;
      free_seen += size;
    } else if (block::should_be_sealed(b) && !block::has_seal(b, region.end)) {
      return b;
    }
    previous_free = is_free;
    b += size;
  }
  if (b == rest_ && b != region.end) return b + block::size_of(b) == region.end ? 0 : b;
  const bool ends = block::size_of(b) == 0 && block::is_in_use(b) &&
                    block::is_previous_in_use(b) != previous_free;
  return ends ? 0 : b;
}

// Whether a link may be followed.
bool Arena::can_be_block(Address b) const {
  return b % granule_bytes == 0 && region_of(b) != nullptr;
}

// Every bin: its blocks are free, of its size, and lie in a region.
Address Arena::find_fault_in_bins(size_t free_bytes) const {
  size_t listed = 0;
  for (unsigned bin = 0; bin < bin_count; ++bin) {
    const bool marked = ((marks_[bin / word_bits] >> (bin % word_bits)) & 1) != 0;
    if (!marked && bins_[bin] != 0) return address_of(&bins_[bin]);
    Address previous = address_of(&bins_[bin]);
    for (Address b = bins_[bin]; b != 0; b = word_at(b)) {
      if (!can_be_block(b) || block::is_in_use(b)) return b;
      if (bin_of(block::free_size_of(b)) != bin) return b;
      if (word_at(b + word_bytes) != previous) return b;
      listed += block::free_size_of(b);
      if (listed > free_bytes) return b;
      previous = b;
    }
  }
  return listed == free_bytes ? 0 : address_of(this);
}

Address Arena::find_fault() const {
  size_t free_bytes = 0;
  for (const Region* region = newest_region(); region != nullptr; region = region->older) {
    if (const Address b = find_fault_in(*region, free_bytes); b != 0) return b;
  }
  return find_fault_in_bins(free_bytes);
}

// Every page of a ring: the links, the page itself, and what the map says of its tiles.
Address Heap::find_fault_in_ring(const Page* ring, SizeClass c, bool full, uint32_t& seen) {
  const Page* page = ring;
  if (page == nullptr) return 0;
  do {
    if (page->full != full || page->class_index != c.index) return address_of(page);
    if (page->next->previous != page) return address_of(page);
    for (size_t i = 0; i < page->tiles; ++i) {
      const Word word = page_map.word_of(page->start + i * tile_bytes);
      if (!PageMap::is_page(word) || &PageMap::page_of(word) != page) return page->start;
    }
    if (const Address fault = page->find_fault(); fault != 0) return fault;
    ++seen;
    page = page->next;
  } while (page != ring);
  return 0;
}

Address Heap::find_fault_in(SizeClass c) const {
  const Class& k = classes_[c.index];
  const Word offset =
      k.ring == nullptr ? 0 : wrapping_subtract(address_of(k.ring), address_of(&empty_page));
  if (direct_[block_granules(c)] != offset) return address_of(&k);
  uint32_t seen = 0;
  if (const Address fault = find_fault_in_ring(k.ring, c, false, seen); fault != 0) return fault;
  if (const Address fault = find_fault_in_ring(k.full_ring, c, true, seen); fault != 0)
    return fault;
  return seen == k.pages ? 0 : address_of(&k);
}

Address Heap::find_fault() const {
  if constexpr (!profile.has_pages) return 0;
  for (unsigned i = 0; i < class_count; ++i) {
    if (const Address fault = find_fault_in({i}); fault != 0) return fault;
  }
  return 0;
}

}  // namespace ashlar
