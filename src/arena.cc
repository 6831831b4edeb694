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
  for (;;) {
    const Fit fit = find(need, alignment);
    if (fit.block == 0) return 0;
    if (page_map.has_leaf(fit.place)) return carve(fit, need, owner);
    if (!ensure_leaf(fit.place)) return 0;
  }
}

Address Arena::allocate_tiles(size_t tiles) {
  for (;;) {
    const uint32_t filled = tile_bins_filled_ >> tiles;
    if (filled == 0) return 0;
    const Address b = tile_bins_[tiles + lowest_bit(filled)];
    const Fit fit{b, place_in(b, tile_bytes)};
    const Address last = fit.place + tiles * tile_bytes - 1;
    if (page_map.has_leaf(fit.place) && page_map.has_leaf(last)) {
      return carve(fit, tiles * tile_bytes, Owner::allocator);
    }
    if (!ensure_leaf(fit.place) || !ensure_leaf(last)) return 0;
  }
}

Address Arena::carve(Fit fit, size_t need, Owner owner) {
  const size_t size = block::free_size_of(fit.block);
  const size_t before = fit.place - fit.block;
  unlink(fit.block, size);
  if (before != 0) {
    block::header(fit.place) = 0;
    page_map.add_start(fit.place);
    block::write_free(fit.block, before);
    link(fit.block, before);
  }
  settle(fit.place, size - before, need, owner, true);
  return fit.place;
}

// Makes `size` bytes at `b` a block in use of `need` bytes and frees the rest, when it can be a
// block. The start is in the page map, what follows is in use.
void Arena::settle(Address b, size_t size, size_t need, Owner owner, bool may_make_leaf) {
  const bool splits = size - need >= block::least_bytes &&
                      can_start(b + need, size - need, may_make_leaf);
  const size_t kept = splits ? need : size;
  const Address end = b + kept;
  const bool in_newest = wrapping_subtract(b, newest_->first) < newest_->end - newest_->first;
  dirty_end_ = in_newest ? min(end, max(b, max(used_to_, zero_from_))) : end;
  if (in_newest) mark_used(end);
  if (splits) {
    add_free(end, size - need);
  } else {
    block::header(end) |= block::previous_in_use;
  }
  block::write_in_use(b, kept, owner);
}

void Arena::mark_used(Address end) {
  if (newest_->end - end <= links_bytes) {
    used_to_ = newest_->end;
  } else if (end + links_bytes > used_to_) {
    used_to_ = end + links_bytes;
  }
}

// A start in a range without a leaf needs one, and takes it from the memory itself: hence twice
// the size, should the rest lie in the next range.
bool Arena::can_start(Address b, size_t size, bool may_make_leaf) {
  return page_map.has_leaf(b) || (may_make_leaf && size >= 2 * leaf_need + block::least_bytes);
}

// Makes [b, b + size) free, between two blocks in use. can_start() holds.
void Arena::add_free(Address b, size_t size) {
  while (!page_map.has_leaf(b)) {
    make_leaf(b, b);
    page_map.add_start(b);
    block::header(b) = block::previous_in_use;
    block::write_in_use(b, leaf_need, Owner::allocator);
    b += leaf_need;
    size -= leaf_need;
    mark_used(b);
  }
  page_map.add_start(b);
  block::write_free(b, size);
  link(b, size);
}

// `next` starts behind `b`; no start is known at a region's end.
void Arena::forget_start(Address b, Address next) {
  page_map.remove_start(b, block::size_of(next) == 0 ? 0 : next);
}

void Arena::free(Address b) {
  size_t size = block::size_of(b);
  const Address next = b + size;
  Address start = b;
  // What was a header must no longer pass for one.
  const bool joins_previous = !block::is_previous_in_use(b);
  block::header(b) = 0;
  if (!block::is_in_use(next)) {
    const size_t next_size = block::free_size_of(next);
    unlink(next, next_size);
    size += next_size;
    forget_start(next, next + next_size);
  }
  if (joins_previous) {
    const size_t previous_size = block::previous_free_size(b);
    start = b - previous_size;
    forget_start(b, b + size);
    unlink(start, previous_size);
    size += previous_size;
  }
  block::write_free(start, size);
  link(start, size);
}

bool Arena::resize(Address b, size_t need) {
  size_t size = block::size_of(b);
  if (need <= size && size - need < block::least_bytes) return true;
  const Address next = b + size;
  if (!block::is_in_use(next)) {
    const size_t next_size = block::free_size_of(next);
    if (size + next_size < need) return false;
    unlink(next, next_size);
    forget_start(next, next + next_size);
    size += next_size;
  } else if (size < need) {
    return false;
  }
  settle(b, size, need, Owner::program, true);
  return true;
}

// Leaves of the page map.

void Arena::make_leaf(Address p, Address memory) {
  page_map.give_leaf(p, memory);
  const Address range = align_down(p, PageMap::range_bytes);
  const Address range_last = range + (PageMap::range_bytes - 1);
  for (Region* region = newest_; region != nullptr; region = region->older) {
    const Address begin = max(address_of(region), range);
    const Address last = min(region->end - 1, range_last);
    if (begin <= last) page_map.add_arena(begin, last + 1);
  }
}

bool Arena::ensure_leaf(Address p) {
  if (page_map.has_leaf(p)) return true;
  const Address leaf = allocate(leaf_need, granule_bytes, Owner::allocator);
  if (leaf == 0) return false;
  // Taking it may have made the very leaf.
  if (page_map.has_leaf(p)) {
    free(leaf);
  } else {
    make_leaf(p, leaf);
  }
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
  const Address start = newest_->end - last_free_bytes();
  const size_t before = wrapping_subtract(place_in(start, alignment), start);
  const size_t wanted = wrapping_add(before, need);
  if (wanted < need || wanted > ~start) return ~size_t(0);
  return wanted - min(wanted, newest_->end - start);
}

bool Arena::grow(size_t need, size_t alignment) {
  if (!asked_for_initial_memory_ && add_initial_memory() && find(need, alignment).block != 0) {
    return true;
  }
  // The second time when the first gave memory that does not touch ours.
  for (unsigned attempt = 0; attempt < 2; ++attempt) {
    const bool joins = newest_ != nullptr && attempt == 0;
    const size_t around = alignment + region_overhead;
    if (!joins && need > ~size_t(0) - around) return false;
    os::Memory memory;
    // A leaf may have to stand before the block.
    const size_t missing = joins ? missing_at_end(need, alignment) : need + around;
    const size_t leaf = joins && last_free_bytes() == 0 ? leaf_need : 0;
    if (missing > ~size_t(0) - leaf || !take_memory(missing + leaf, memory)) return false;
    if (const Address begin = extend(memory); begin != 0) free_extension(begin);
    if (find(need, alignment).block != 0) return true;
  }
  return false;
}

bool Arena::is_last(Address b) const {
  const Address next = b + block::size_of(b);
  const Address end = block::is_in_use(next) ? next : next + block::free_size_of(next);
  return end == newest_->end;
}

bool Arena::grow_last(Address b, size_t need) {
  const size_t free_behind = last_free_bytes();
  const size_t size = block::size_of(b) + free_behind;
  os::Memory memory;
  if (need - size > ~b || !take_memory(need - size, memory)) return false;
  const Address begin = extend(memory);
  if (begin == 0) return false;
  if (free_behind != 0) {
    const Address next = begin - free_behind;
    unlink(next, free_behind);
    forget_start(next, begin);
    word_at(begin - 2 * word_bytes) = 0;
  }
  block::header(begin) = 0;
  // Without a leaf for the rest, the block keeps it: a leaf behind it would stop its growth.
  settle(b, newest_->end - b, need, Owner::program, false);
  return true;
}

// Joins memory to the newest region. The old end, where the caller makes a block begin or merges;
// 0 when it does not touch: then it is a region of its own, ready.
Address Arena::extend(const os::Memory& memory) {
  if (newest_ == nullptr || memory.begin != newest_->raw_end) {
    add_region(memory);
    return 0;
  }
  const Address begin = newest_->end;
  const Address raw_end = wrapping_add(memory.begin, memory.bytes);
  // An end of 2^32 is no address: leave the last granule.
  const Address end = align_down(raw_end == 0 ? 0 - granule_bytes : raw_end, granule_bytes);
  newest_->end = end;
  newest_->raw_end = raw_end;
  committed_bytes_ += memory.bytes;
  page_map.add_arena(begin, end);
  if (memory.zero_from != memory.begin) zero_from_ = memory.zero_from;
  block::write_end(end, block::previous_in_use);
  return begin;
}

// Frees what extend() joined.
void Arena::free_extension(Address begin) {
  const size_t size = newest_->end - begin;
  if (block::is_previous_in_use(begin)) {
    block::header(begin) = block::previous_in_use;
    mark_used(begin);
    add_free(begin, size);
    return;
  }
  const size_t before = block::previous_free_size(begin);
  unlink(begin - before, before);
  block::header(begin) = 0;
  word_at(begin - 2 * word_bytes) = 0;
  block::write_free(begin - before, before + size);
  link(begin - before, before + size);
}

bool Arena::add_initial_memory() {
  asked_for_initial_memory_ = true;
  const os::Memory memory = os::initial_memory();
  if (memory.bytes < region_overhead + 2 * tile_bytes) return false;
  add_region(memory);
  return true;
}

void Arena::add_region(const os::Memory& memory) {
  const Address begin = align_up(memory.begin, granule_bytes);
  const Address raw_end = wrapping_add(memory.begin, memory.bytes);
  const Address end = align_down(raw_end == 0 ? 0 - granule_bytes : raw_end, granule_bytes);
  Region& region = at<Region>(begin);
  region = {newest_, 0, end, raw_end};
  newest_ = &region;
  committed_bytes_ += memory.bytes;
  // A range that it shares with older regions must tell what is whose.
  Address cursor = begin + sizeof(Region);
  const Address edges[] = {begin, end - 1};
  for (const Address edge : edges) {
    if (!page_map.is_known(edge) || page_map.has_leaf(edge)) continue;
    make_leaf(edge, cursor);
    cursor += PageMap::leaf_bytes;
  }
  page_map.add_arena(begin, end);
  region.first = align_up(cursor + word_bytes, granule_bytes);
  while (!page_map.has_leaf(region.first)) {
    make_leaf(region.first, cursor);
    cursor += PageMap::leaf_bytes;
    region.first = align_up(cursor + word_bytes, granule_bytes);
  }
  used_to_ = region.first;
  zero_from_ = memory.zero_from;
  mark_used(region.first);
  block::header(region.first) = block::previous_in_use;
  block::write_end(end, block::previous_in_use);
  add_free(region.first, end - region.first);
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

// The last block that starts in a tile before that of `p`: what is at `p` belongs to it, if none
// starts in its own.
Address Arena::last_start_before(Address p, const Region& region) {
  Address tile = align_down(p, tile_bytes);
  while (tile > region.first) {
    tile = align_down(tile - 1, page_map.has_leaf(tile - 1) ? tile_bytes : PageMap::range_bytes);
    if (page_map.place_of(tile) != Place::arena) return 0;
    if (const Address start = page_map.first_start(tile); start != 0) return start;
  }
  return region.first;
}

Fault Arena::fault_at(Address p) const {
  const Region* region = region_of(p);
  if (region == nullptr) return Fault::foreign_pointer;
  Address b = page_map.first_start(p);
  const bool may_start = b != 0 && b <= p && p % granule_bytes == 0;
  if (may_start && block::has_seal(p)) return Fault::none;
  if (b == 0 || b > p) b = last_start_before(p, *region);
  if (b == 0) return Fault::foreign_pointer;
  for (;;) {
    const size_t size = block::size_of(b);
    if (!is_sound_size(size, b, *region)) return Fault::corrupted_header;
    if (p - b < size) break;
    b += size;
  }
  if (!block::is_in_use(b)) return Fault::double_free;
  if (block::is_programs(b)) {
    if (p != b) return Fault::interior_pointer;
    // A seal that is there but wrong was overwritten.
    return block::size_of(b) < block::sealed_limit ? Fault::corrupted_header : Fault::none;
  }
  return Fault::foreign_pointer;
}

}  // namespace ashlar
