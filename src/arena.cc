#include "arena.h"

namespace ashlar {

using block::Owner;

constinit Arena arena{};

// Bins.

unsigned Arena::bin_of(size_t size) {
  const size_t granules = size / granule_bytes;
  if (granules < sub_count) return unsigned(granules);
  const unsigned doubling = highest_bit(granules);
  const unsigned sub = unsigned(granules >> (doubling - sub_bits)) & (sub_count - 1);
  return (doubling - sub_bits + 1) * sub_count + sub;
}

// The first multiple of `alignment` in the free block `b` that leaves room for a block before it.
Address Arena::place_in(Address b, size_t alignment) {
  Address place = wrapping_add(b, alignment - 1) & ~(alignment - 1);
  if (place != b && wrapping_subtract(place, b) < block::least_bytes) {
    place = wrapping_add(place, alignment);
  }
  return place;
}

// 0: no whole tile.
unsigned Arena::tile_bin_of(Address b, size_t size) {
  const size_t before = wrapping_subtract(place_in(b, tile_bytes), b);
  if (before >= size) return 0;
  return unsigned(min((size - before) / tile_bytes, tile_bin_count - 1));
}

void Arena::push(Address& head, Address b, size_t link) {
  word_at(b + link) = head;
  word_at(b + link + word_bytes) = 0;
  if (head != 0) word_at(head + link + word_bytes) = b;
  head = b;
}

void Arena::remove(Address& head, Address b, size_t link) {
  const Address next = word_at(b + link);
  const Address previous = word_at(b + link + word_bytes);
  if (next != 0) word_at(next + link + word_bytes) = previous;
  if (previous != 0) {
    word_at(previous + link) = next;
  } else {
    head = next;
  }
}

void Arena::link(Address b, size_t size) {
  const unsigned bin = bin_of(size);
  push(bins_[bin], b, size_link);
  rows_ |= Word(1) << (bin / sub_count);
  subs_[bin / sub_count] |= uint8_t(1u << (bin % sub_count));
  free_bytes_ += size;
  if constexpr (!profile.has_pages) return;
  if (size < tile_bytes) return;
  if (const unsigned tiles = tile_bin_of(b, size); tiles != 0) {
    push(tile_bins_[tiles], b, tile_link);
    tile_bins_filled_ |= 1u << tiles;
  }
}

void Arena::unlink(Address b, size_t size) {
  const unsigned bin = bin_of(size);
  const unsigned row = bin / sub_count;
  remove(bins_[bin], b, size_link);
  if (bins_[bin] == 0) {
    subs_[row] &= uint8_t(~(1u << (bin % sub_count)));
    if (subs_[row] == 0) rows_ &= ~(Word(1) << row);
  }
  free_bytes_ -= size;
  if constexpr (!profile.has_pages) return;
  if (size < tile_bytes) return;
  if (const unsigned tiles = tile_bin_of(b, size); tiles != 0) {
    remove(tile_bins_[tiles], b, tile_link);
    if (tile_bins_[tiles] == 0) tile_bins_filled_ &= ~(1u << tiles);
  }
}

// The first bin from `bin` on that holds a block, or bin_count.
unsigned Arena::next_filled_bin(unsigned bin) const {
  unsigned row = bin / sub_count;
  if (row >= row_count) return bin_count;
  const unsigned subs = unsigned(subs_[row]) >> (bin % sub_count);
  if (subs != 0) return bin + lowest_bit(subs);
  if (++row >= row_count) return bin_count;
  const Word rows = rows_ >> row;
  if (rows == 0) return bin_count;
  row += lowest_bit(rows);
  return row * sub_count + lowest_bit(subs_[row]);
}

// The smallest that fits among the first few; the lower address on a tie.
Arena::Fit Arena::best_in_bin(unsigned bin, size_t need, size_t alignment, unsigned looks) const {
  Fit best{};
  size_t best_size = 0;
  for (Address b = bins_[bin]; b != 0 && looks != 0; b = word_at(b + size_link), --looks) {
    const size_t size = block::free_size_of(b);
    const Address place = place_in(b, alignment);
    const size_t before = wrapping_subtract(place, b);
    if (size < need || before > size - need) continue;
    if (best.block != 0 && (size > best_size || (size == best_size && b > best.block))) continue;
    best = {b, place};
    best_size = size;
  }
  return best;
}

Arena::Fit Arena::find(size_t need, size_t alignment) const {
  // A few looks first; only then, instead of growing, all.
  constexpr unsigned looks_in_turn[] = {looks_per_bin, ~0u};
  for (const unsigned looks : looks_in_turn) {
    for (unsigned bin = next_filled_bin(bin_of(need)); bin < bin_count;
         bin = next_filled_bin(bin + 1)) {
      const Fit fit = best_in_bin(bin, need, alignment, looks);
      if (fit.block != 0) return fit;
    }
  }
  return {};
}

// Cutting blocks.

Address Arena::allocate(size_t need, size_t alignment, Owner owner) {
  const Fit fit = find(need, alignment);
  return fit.block == 0 ? 0 : carve(fit, need, owner);
}

Address Arena::allocate_tiles(size_t tiles) {
  const uint32_t filled = tile_bins_filled_ >> tiles;
  if (filled == 0) return 0;
  const Address b = tile_bins_[tiles + lowest_bit(filled)];
  return carve({b, place_in(b, tile_bytes)}, tiles * tile_bytes, Owner::allocator);
}

Address Arena::carve(Fit fit, size_t need, Owner owner) {
  const size_t size = block::free_size_of(fit.block);
  const size_t before = fit.place - fit.block;
  unlink(fit.block, size);
  if (before != 0) {
    block::header(fit.place) = 0;
    add_free(fit.block, before);
  }
  settle(fit.place, size - before, need, owner);
  return fit.place;
}

// Makes `size` bytes at `b` a block in use of `need` bytes and frees the rest, when it can be a
// block. What follows is in use.
void Arena::settle(Address b, size_t size, size_t need, Owner owner) {
  const size_t kept = size - need >= block::least_bytes ? need : size;
  const Address end = b + kept;
  const bool in_newest = wrapping_subtract(b, newest_->first) < newest_->end - newest_->first;
  dirty_end_ = in_newest ? min(end, max(b, max(used_to_, zero_from_))) : end;
  if (in_newest) mark_used(end);
  if (kept != size) {
    add_free(end, size - kept);
  } else {
    block::header(end) |= block::previous_in_use;
  }
  block::write_in_use(b, kept, owner);
}

// Whatever ends at `end`, a free block behind it holds its links there.
void Arena::mark_used(Address end) {
  const size_t behind = newest_->end - end;
  used_to_ = max(used_to_, end + min(behind, links_bytes));
}

// Makes [b, b + size) a free block, between two in use.
void Arena::add_free(Address b, size_t size) {
  block::write_free(b, size);
  link(b, size);
}

void Arena::free(Address b) {
  size_t size = block::size_of(b);
  const Address next = b + size;
  const bool joins_previous = !block::is_previous_in_use(b);
  // Inside a larger free block it must no longer pass for a header.
  block::header(b) = 0;
  if (!block::is_in_use(next)) {
    const size_t next_size = block::free_size_of(next);
    unlink(next, next_size);
    size += next_size;
  }
  if (joins_previous) {
    const size_t previous_size = block::previous_free_size(b);
    b -= previous_size;
    unlink(b, previous_size);
    size += previous_size;
  }
  add_free(b, size);
}

bool Arena::resize(Address b, size_t need) {
  size_t size = block::size_of(b);
  const Address next = b + size;
  if (!block::is_in_use(next)) {
    const size_t next_size = block::free_size_of(next);
    if (size + next_size < need) return false;
    unlink(next, next_size);
    size += next_size;
  } else if (size < need) {
    return false;
  }
  settle(b, size, need, Owner::program);
  return true;
}

// Growth.

size_t Arena::last_free_bytes() const {
  if (newest_ == nullptr || block::is_previous_in_use(newest_->end)) return 0;
  return block::previous_free_size(newest_->end);
}

unsigned Arena::set_growth_divisor(unsigned divisor) {
  const unsigned before = wrapping_subtract32(default_growth_divisor, divisor_change_);
  divisor_change_ = wrapping_subtract32(default_growth_divisor, divisor);
  return before;
}

// Takes at least `missing` bytes, more when the policy says so and the system lets us.
bool Arena::take_memory(size_t missing, os::Memory& memory) {
  constexpr size_t unit = os::grow_unit_bytes;
  if (missing > ~size_t(0) - unit) return false;
  const size_t least = align_up(missing, unit);
  const unsigned divisor = wrapping_subtract32(default_growth_divisor, divisor_change_);
  const size_t step = divisor == 0 ? 0 : align_down(committed_bytes_ / divisor, unit);
  memory = os::take_memory(max(least, step));
  if (memory.bytes == 0 && step > least) memory = os::take_memory(least);
  if (memory.bytes == 0) return false;
  ++grow_count_;
  return true;
}

// What must follow the memory's end for a block to fit there. Too much for any system when it
// would pass the end of the address space.
size_t Arena::missing_at_end(size_t need, size_t alignment) const {
  if (newest_ == nullptr) return missing_alone(need, alignment);
  const Address start = newest_->end - last_free_bytes();
  const size_t before = wrapping_subtract(place_in(start, alignment), start);
  const size_t wanted = wrapping_add(before, need);
  if (wanted < need || wanted > ~start) return ~size_t(0);
  return wanted - min(wanted, newest_->end - start);
}

// What memory of its own must have.
size_t Arena::missing_alone(size_t need, size_t alignment) {
  const size_t around = alignment + region_overhead;
  return need > ~size_t(0) - around ? ~size_t(0) : need + around;
}

bool Arena::grow(size_t need, size_t alignment) {
  if (!asked_for_initial_memory_) {
    asked_for_initial_memory_ = true;
    const os::Memory memory = os::initial_memory();
    if (memory.bytes >= 2 * region_overhead) add_region(memory);
    if (find(need, alignment).block != 0) return true;
  }
  // A second time when the first gave memory that does not touch ours.
  size_t missing = missing_at_end(need, alignment);
  for (unsigned attempt = 0; attempt < 2; ++attempt) {
    os::Memory memory;
    if (!take_memory(missing, memory)) return false;
    if (!joins(memory)) {
      add_region(memory);
    } else {
      extend(memory);
    }
    if (find(need, alignment).block != 0) return true;
    missing = missing_alone(need, alignment);
  }
  return false;
}

bool Arena::is_last(Address b) const {
  return b + block::size_of(b) == newest_->end - last_free_bytes();
}

bool Arena::grow_last(Address b, size_t need) {
  const size_t size = newest_->end - b;
  os::Memory memory;
  if (!take_memory(need - size, memory)) return false;
  if (joins(memory)) {
    extend(memory);
  } else {
    add_region(memory);
  }
  return resize(b, need);
}

bool Arena::joins(const os::Memory& memory) const {
  return newest_ != nullptr && memory.begin == newest_->raw_end;
}

// The last multiple of a granule that is an address: an end of 2^32 is none.
Address Arena::last_end(Address raw_end) {
  return align_down(raw_end == 0 ? 0 - granule_bytes : raw_end, granule_bytes);
}

// Joins memory to the newest region: the old end becomes the header of a block, which is freed.
void Arena::extend(const os::Memory& memory) {
  const Address b = newest_->end;
  newest_->raw_end = wrapping_add(memory.begin, memory.bytes);
  newest_->end = last_end(newest_->raw_end);
  committed_bytes_ += memory.bytes;
  if (memory.zero_from != memory.begin) zero_from_ = memory.zero_from;
  block::write_end(newest_->end);
  // What lies in the middle of fresh memory from now on must be zero like the rest.
  if (!block::is_previous_in_use(b)) {
    const size_t before = block::previous_free_size(b);
    block::last_word(b, 0) = 0;
    block::header(b) = 0;
    unlink(b - before, before);
    add_free(b - before, newest_->end - b + before);
  } else {
    mark_used(b);
    add_free(b, newest_->end - b);
  }
}

void Arena::add_region(const os::Memory& memory) {
  const Address begin = align_up(memory.begin, granule_bytes);
  const Address raw_end = wrapping_add(memory.begin, memory.bytes);
  Region& region = at<Region>(begin);
  region.older = newest_;
  region.first = align_up(begin + sizeof(Region) + word_bytes, granule_bytes);
  region.raw_end = raw_end;
  region.end = last_end(raw_end);
  newest_ = &region;
  committed_bytes_ += memory.bytes;
  zero_from_ = memory.zero_from;
  used_to_ = region.first + links_bytes;
  block::write_end(region.end);
  add_free(region.first, region.end - region.first);
}

// Questions.

size_t Arena::largest_free_bytes() const {
  if (rows_ == 0) return 0;
  const unsigned row = highest_bit(rows_);
  size_t largest = 0;
  for (Address b = bins_[row * sub_count + highest_bit(subs_[row])]; b != 0;
       b = word_at(b + size_link)) {
    largest = max(largest, block::free_size_of(b));
  }
  return largest;
}

const Region* Arena::region_of(Address p) const {
  const Region* region = newest_;
  while (region != nullptr && (p < region->first || p >= region->end)) region = region->older;
  return region;
}

bool Arena::is_sound_size(size_t size, Address b, const Region& region) {
  return size >= block::least_bytes && size <= region.end - b && size % granule_bytes == 0;
}

Fault Arena::fault_at(Address p) const {
  const Region* region = region_of(p);
  if (region == nullptr) return Fault::foreign_pointer;
  if (p % granule_bytes == 0 && block::has_seal(p, region->end)) return Fault::none;
  return classify(p, *region);
}

// The program is about to stop: walks the region to the block that holds `p`.
slow_path Fault Arena::classify(Address p, const Region& region) {
  Address b = region.first;
  for (;;) {
    const size_t size = block::size_of(b);
    if (!is_sound_size(size, b, region)) return Fault::corrupted_header;
    if (p - b < size) break;
    b += size;
  }
  if (!block::is_in_use(b)) return Fault::double_free;
  if (block::has_seal(b, region.end)) return Fault::interior_pointer;
  return block::lost_seal(b) ? Fault::corrupted_header : Fault::foreign_pointer;
}

}  // namespace ashlar
