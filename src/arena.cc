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

void Arena::push(Address& head, Address b, size_t offset) {
  word_at(b + offset) = head;
  word_at(b + offset + word_bytes) = 0;
  if (head != 0) word_at(head + offset + word_bytes) = b;
  head = b;
}

void Arena::remove(Address& head, Address b, size_t offset) {
  const Address next = word_at(b + offset);
  const Address previous = word_at(b + offset + word_bytes);
  if (next != 0) word_at(next + offset + word_bytes) = previous;
  if (previous != 0) {
    word_at(previous + offset) = next;
  } else {
    head = next;
  }
}

// The rest of the newest region is in no bin.
void Arena::link(Address b, size_t size) {
  if (b + size == newest_->end) return;
  const unsigned bin = bin_of(size);
  push(bins_[bin], b, size_link);
  rows_ |= Word(1) << (bin / sub_count);
  subs_[bin / sub_count] |= uint8_t(1u << (bin % sub_count));
  if constexpr (!profile.has_pages) return;
  if (size < tile_bytes) return;
  if (const unsigned tiles = tile_bin_of(b, size); tiles != 0) {
    push(tile_bins_[tiles], b, tile_link);
    tile_bins_filled_ |= 1u << tiles;
  }
}

void Arena::unlink(Address b, size_t size) {
  if (b + size == newest_->end) return;
  const unsigned bin = bin_of(size);
  const unsigned row = bin / sub_count;
  remove(bins_[bin], b, size_link);
  if (bins_[bin] == 0) {
    subs_[row] &= uint8_t(~(1u << (bin % sub_count)));
    if (subs_[row] == 0) rows_ &= ~(Word(1) << row);
  }
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

bool Arena::fits(Address b, size_t size, size_t need, size_t alignment) {
  const size_t before = wrapping_subtract(place_in(b, alignment), b);
  return size >= need && before <= size - need;
}

// The smallest that fits among the first few; the lower address on a tie.
Address Arena::best_in_bin(unsigned bin, size_t need, size_t alignment, unsigned looks) const {
  Address best = 0;
  size_t best_size = ~size_t(0);
  for (Address b = bins_[bin]; b != 0 && looks != 0; b = word_at(b + size_link), --looks) {
    const size_t size = block::free_size_of(b);
    if (size > best_size || !fits(b, size, need, alignment)) continue;
    if (size == best_size && b > best) continue;
    best = b;
    best_size = size;
  }
  return best;
}

Address Arena::best_in_bins(size_t need, size_t alignment, unsigned looks) const {
  unsigned bin = bin_of(need);
  while ((bin = next_filled_bin(bin)) < bin_count) {
    if (const Address b = best_in_bin(bin, need, alignment, looks); b != 0) return b;
    ++bin;
  }
  return 0;
}

// The rest only when a few looks find nothing else, so that what is growing at the end can grow on;
// all looks only when memory would grow.
Address Arena::find(size_t need, size_t alignment) const {
  if (const Address b = best_in_bins(need, alignment, looks_per_bin); b != 0) return b;
  if (const size_t size = last_free_bytes(); size != 0) {
    const Address rest = newest_->end - size;
    if (fits(rest, size, need, alignment)) return rest;
  }
  return best_in_bins(need, alignment, ~0u);
}

// The lowest address among the first few that have no more tiles than they must; then the rest.
Address Arena::find_tiles(size_t tiles) const {
  const uint32_t filled = tile_bins_filled_ >> tiles;
  if (filled == 0) {
    const size_t size = last_free_bytes();
    return tile_bin_of(newest_->end - size, size) >= tiles ? newest_->end - size : 0;
  }
  Address lowest = ~Address(0);
  Address b = tile_bins_[tiles + lowest_bit(filled)];
  for (unsigned looks = looks_per_bin; b != 0 && looks != 0; b = word_at(b + tile_link), --looks) {
    lowest = min(lowest, b);
  }
  return lowest;
}

// Cutting blocks.

Address Arena::allocate(size_t need, size_t alignment, Owner owner) {
  const Address b = find(need, alignment);
  return b == 0 ? 0 : cut(b, alignment, need, owner);
}

Address Arena::allocate_tiles(size_t tiles) {
  const Address b = newest_ == nullptr ? 0 : find_tiles(tiles);
  return b == 0 ? 0 : cut(b, tile_bytes, tiles * tile_bytes, Owner::allocator);
}

// Cuts a block in use out of the free block `b`, where it fits.
Address Arena::cut(Address b, size_t alignment, size_t need, Owner owner) {
  const size_t size = block::free_size_of(b);
  const Address place = place_in(b, alignment);
  unlink(b, size);
  if (place != b) {
    block::header(place) = 0;
    add_free(b, place - b);
  }
  settle(place, size - (place - b), need, owner);
  return place;
}

// Makes `size` bytes at `b` a block in use of `need` bytes and frees the rest, when it can be a
// block. What follows is in use.
void Arena::settle(Address b, size_t size, size_t need, Owner owner) {
  const size_t kept = size - need >= block::least_bytes ? need : size;
  const Address end = b + kept;
  const bool in_newest = wrapping_subtract(b, newest_->first) < newest_->end - newest_->first;
  dirty_end_ = in_newest ? min(end, max(b, max(used_to_, zero_from_))) : end;
  if (in_newest) used_to_ = max(used_to_, end);
  if (kept != size) {
    add_free(end, size - kept);
  } else {
    block::header(end) |= block::previous_in_use;
  }
  block::write_in_use(b, kept, owner);
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

// Takes at least `missing` bytes, more when the policy says so and the system lets us, and makes
// them free.
bool Arena::take_more(size_t missing) {
  constexpr size_t unit = os::grow_unit_bytes;
  if (missing > ~size_t(0) - unit) return false;
  const size_t least = align_up(missing, unit);
  const unsigned divisor = wrapping_subtract32(default_growth_divisor, divisor_change_);
  const size_t step = divisor == 0 ? 0 : align_down(committed_bytes_ / divisor, unit);
  os::Memory memory = os::take_memory(max(least, step));
  if (memory.bytes == 0 && step > least) memory = os::take_memory(least);
  if (memory.bytes == 0) return false;
  ++grow_count_;
  if (newest_ != nullptr && memory.begin == newest_->raw_end) {
    extend(memory);
  } else {
    add_region(memory);
  }
  return true;
}

// What must be taken for a block to fit: behind the rest, or in memory of its own. More than any
// system has when there is no such number.
size_t Arena::missing_for(size_t need, size_t alignment, bool alone) const {
  const size_t rest = alone ? 0 : last_free_bytes();
  size_t before = alignment + region_overhead;
  if (!alone) {
    const Address start = newest_->end - rest;
    before = wrapping_subtract(place_in(start, alignment), start);
  }
  const size_t wanted = wrapping_add(before, need);
  return wanted < need ? ~size_t(0) : wanted - min(wanted, rest);
}

bool Arena::grow(size_t need, size_t alignment, unsigned attempt) {
  if (!asked_for_initial_memory_) {
    asked_for_initial_memory_ = true;
    if (const os::Memory memory = os::initial_memory(); memory.bytes >= 2 * region_overhead) {
      add_region(memory);
      return true;
    }
  }
  const bool alone = newest_ == nullptr || attempt == last_attempt;
  return take_more(missing_for(need, alignment, alone));
}

bool Arena::is_last(Address b) const {
  return b + block::size_of(b) == newest_->end - last_free_bytes();
}

bool Arena::grow_last(Address b, size_t need) {
  return take_more(need - (newest_->end - b)) && resize(b, need);
}

// The last multiple of a granule that is an address: an end of 2^32 is none.
Address Arena::last_end(Address raw_end) {
  return align_down(raw_end == 0 ? 0 - granule_bytes : raw_end, granule_bytes);
}

// Joins memory to the newest region: the rest gets longer.
void Arena::extend(const os::Memory& memory) {
  const size_t before = last_free_bytes();
  const Address old_end = newest_->end;
  newest_->raw_end = wrapping_add(memory.begin, memory.bytes);
  newest_->end = last_end(newest_->raw_end);
  committed_bytes_ += memory.bytes;
  if (memory.zero_from != memory.begin) zero_from_ = memory.zero_from;
  block::write_end(newest_->end);
  // In the middle of fresh memory from now on, which is zero.
  block::header(old_end) = 0;
  if (before != 0) block::last_word(old_end, 0) = 0;
  block::write_free(old_end - before, newest_->end - old_end + before);
}

void Arena::add_region(const os::Memory& memory) {
  const size_t old_rest = last_free_bytes();
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
  used_to_ = region.first;
  block::write_end(region.end);
  block::write_free(region.first, region.end - region.first);
  if (old_rest != 0) link(region.older->end - old_rest, old_rest);
}

// Questions.

// Shows every block to `visit`, with the end of its region. A size that leads nowhere ends the
// walk: ashlar_check() tells of it.
template <class Visit>
void Arena::visit_blocks(Visit visit) const {
  for (const Region* region = newest_; region != nullptr; region = region->older) {
    for (Address b = region->first; is_sound_size(block::size_of(b), b, *region);
         b += block::size_of(b)) {
      visit(b, region->end);
    }
  }
}

Arena::Census Arena::count() const {
  Census census{};
  visit_blocks([&](Address b, Address end) {
    if (!block::is_in_use(b)) {
      const size_t size = block::free_size_of(b);
      census.free_bytes += size;
      ++census.free_blocks;
      census.largest_free_bytes = max(census.largest_free_bytes, size);
    } else if (block::has_seal(b, end)) {
      ++census.live_blocks;
      census.live_bytes += block::usable_bytes(b);
    }
  });
  return census;
}

void Arena::count_free(size_t* counts) const {
  for (unsigned i = 0; i < word_bits; ++i) counts[i] = 0;
  visit_blocks([=](Address b, Address) {
    if (!block::is_in_use(b)) ++counts[highest_bit(block::free_size_of(b))];
  });
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
  if (!block::should_be_sealed(b)) return Fault::foreign_pointer;
  return p == b ? Fault::corrupted_header : Fault::interior_pointer;
}

}  // namespace ashlar
