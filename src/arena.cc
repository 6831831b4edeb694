#include "arena.h"

namespace ashlar {

using block::Owner;

constinit Arena arena{};

// Bins.

unsigned Arena::bin_of(size_t size) { return eighths(size / granule_bytes); }

// The first multiple of `alignment` in the free block `b` that leaves room for a block before it.
Address Arena::place_in(Address b, size_t alignment) {
  Address place = wrapping_add(b, alignment - 1) & ~(alignment - 1);
  if (place != b && wrapping_subtract(place, b) < block::least_bytes) {
    place = wrapping_add(place, alignment);
  }
  return place;
}

// A free block's first word links to the next one of its bin, the second to where it is linked
// from: another block, or the bin itself. So leaving a bin needs no test for its first block.

void Arena::link(Address b, size_t size) {
  const unsigned bin = bin_of(size);
  const Address next = bins_[bin];
  word_at(b) = next;
  word_at(b + word_bytes) = address_of(&bins_[bin]);
  bins_[bin] = b;
  if (next != 0) {
    word_at(next + word_bytes) = b;
  } else {
    marks_[bin / word_bits] |= Word(1) << (bin % word_bits);
    marked_words_ |= 1u << (bin / word_bits);
  }
}

void Arena::unlink(Address b) {
  const Address next = word_at(b);
  const Address previous = word_at(b + word_bytes);
  word_at(previous) = next;
  if (next != 0) word_at(next + word_bytes) = previous;
}

void Arena::unmark(unsigned bin) {
  Word& marks = marks_[bin / word_bits];
  marks &= ~(Word(1) << (bin % word_bits));
  if (marks == 0) marked_words_ &= ~(1u << (bin / word_bits));
}

// The first bin from `bin` on that is marked, or bin_count.
fast_path unsigned Arena::next_marked_bin(unsigned bin) const {
  unsigned i = bin / word_bits;
  const Word marks = marks_[i] >> (bin % word_bits);
  if (marks != 0) return bin + lowest_bit(marks);
  const unsigned words = marked_words_ >> i >> 1;
  if (words == 0) return bin_count;
  i += 1 + lowest_bit(words);
  return i * word_bits + lowest_bit(marks_[i]);
}

bool Arena::fits(Address b, size_t size, size_t need, size_t alignment) {
  if (size < need) return false;
  return alignment == granule_bytes || wrapping_subtract(place_in(b, alignment), b) <= size - need;
}

// The smallest that fits among the first few.
Address Arena::best_in_bin(Address first, size_t need, size_t alignment, unsigned looks) {
  Address best = 0;
  size_t best_size = ~size_t(0);
  for (Address b = first; b != 0 && looks != 0; b = word_at(b), --looks) {
    const size_t size = block::free_size_of(b);
    if (size >= best_size || !fits(b, size, need, alignment)) continue;
    best = b;
    best_size = size;
    if (size == need) break;
  }
  return best;
}

Address Arena::best_in_bins(size_t need, size_t alignment, unsigned looks) {
  unsigned bin = bin_of(need);
  for (; (bin = next_marked_bin(bin)) < bin_count; ++bin) {
    const Address first = bins_[bin];
    if (first == 0) unmark(bin);
    if (const Address b = best_in_bin(first, need, alignment, looks); b != 0) return b;
  }
  return 0;
}

// The rest only when a few looks find nothing else, so that what is growing at the end can grow on;
// all looks only when memory would grow.
Address Arena::find(size_t need, size_t alignment) {
  const unsigned looks =
      profile.has_pages && alignment == tile_bytes ? looks_for_page : looks_per_bin;
  if (const Address b = best_in_bins(need, alignment, looks); b != 0) return b;
  if (fits(rest_, last_free_bytes(), need, alignment)) return rest_;
  return best_in_bins(need, alignment, ~0u);
}

// Cutting blocks.

Address Arena::allocate(size_t need, size_t alignment, Owner owner) {
  const Address b = find(need, alignment);
  if (b == 0) return 0;
  if (b == rest_) {
    // Not as its header says, which the block before may have written over.
    if constexpr (profile.checks_neighbours) set_rest(b, newest_.end);
  } else {
    unlink(b);
  }
  const size_t size = block::free_size_of(b);
  const Address place = alignment == granule_bytes ? b : place_in(b, alignment);
  if (place != b) {
    block::header(place) = 0;
    add_free(b, place - b);
  }
  used_before_ = used_to_;
  settle(place, size - (place - b), need, owner);
  return place;
}

// Makes `size` bytes at `b`, which are in no bin, a block in use of `need` bytes and frees what can
// be a block of its own.
void Arena::settle(Address b, size_t size, size_t need, Owner owner) {
  // Copies, since the compiler must take every word that is written for one of ours.
  const Address region_end = newest_.end;
  const Address used_to = used_to_;
  const bool splits = size - need >= block::least_bytes;
  const size_t kept = splits ? need : size;
  const Address end = b + kept;
  if (wrapping_subtract(end, used_to) <= region_end - used_to) used_to_ = end;
  block::write_in_use(b, kept, owner);
  if (b + size == region_end) {
    set_rest(end, region_end);
  } else if (splits) {
    add_free(end, size - kept);
  } else {
    block::header(end) |= block::previous_in_use;
  }
}

// The rest begins at `b`, after a block in use.
void Arena::set_rest(Address b, Address region_end) {
  rest_ = b;
  if (b != region_end) block::header(b) = (region_end - b) | block::previous_in_use;
}

// Makes [b, b + size) a free block, between two in use.
void Arena::add_free(Address b, size_t size) {
  block::write_free(b, size);
  link(b, size);
}

void Arena::free(Address b) {
  const Address region_end = newest_.end;
  const Address next = b + block::size_of(b);
  Address end = next;
  const bool joins_previous = !block::is_previous_in_use(b);
  // Inside a larger free block it must no longer pass for a header.
  block::header(b) = 0;
  if (!block::is_in_use(next)) {
    end += free_bytes_at(next);
    if (end != region_end) unlink(next);
  }
  if (joins_previous) {
    b -= block::previous_free_size(b);
    unlink(b);
  }
  if (end == region_end) return set_rest(b, end);
  add_free(b, end - b);
}

bool Arena::resize(Address b, size_t need) {
  size_t size = block::size_of(b);
  const Address next = b + size;
  if (!block::is_in_use(next)) {
    const size_t next_size = free_bytes_at(next);
    if (size + next_size < need) return false;
    if (next != rest_) unlink(next);
    size += next_size;
  } else if (size < need) {
    return false;
  }
  settle(b, size, need, Owner::program);
  return true;
}

// The size of a free block. It says the same at both of its ends, or it was written over, or it is
// in use and its header was. What the rest says of itself is not believed.
size_t Arena::free_bytes_at(Address b) const {
  const size_t size = block::free_size_of(b);
  if constexpr (profile.checks_neighbours) {
    if (b == rest_) return last_free_bytes();
    const bool fits_in = size <= wrapping_subtract(newest_.end, b);
    if (!fits_in || block::last_word(b, size) != size) stop_on_fault(Fault::corrupted_header, b);
  }
  return size;
}

// Growth.

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
  take_in(memory);
  return true;
}

// What must be taken for a block to fit: behind the rest, or in memory of its own. More than any
// system has when there is no such number.
size_t Arena::missing_for(size_t need, size_t alignment, bool alone) const {
  const size_t rest = alone ? 0 : last_free_bytes();
  size_t before = alignment + region_overhead;
  if (!alone) {
    before = wrapping_subtract(place_in(rest_, alignment), rest_);
  }
  const size_t wanted = wrapping_add(before, need);
  return wanted < need ? ~size_t(0) : wanted - min(wanted, rest);
}

bool Arena::grow(size_t need, size_t alignment, unsigned attempt) {
  if (!asked_for_initial_memory_) {
    asked_for_initial_memory_ = true;
    if (const os::Memory memory = os::initial_memory(); memory.bytes >= 2 * region_overhead) {
      take_in(memory);
      return true;
    }
  }
  const bool alone = newest_.end == 0 || attempt == last_attempt;
  return take_more(missing_for(need, alignment, alone));
}

bool Arena::is_last(Address b) const { return b + block::size_of(b) == rest_; }

bool Arena::grow_last(Address b, size_t need) {
  return take_more(need - (newest_.end - b)) && resize(b, need);
}

size_t Arena::dirty_bytes(Address b) const {
  const Address end = b + block::size_of(b);
  const bool reaches_fresh =
      wrapping_subtract(end, used_before_) <= wrapping_subtract(newest_.end, used_before_);
  return reaches_fresh ? max(b, max(used_before_, zero_from_)) - b : end - b;
}

// The last multiple of a granule that is an address: an end of 2^32 is none.
Address Arena::last_end(Address raw_end) {
  return align_down(raw_end == 0 ? 0 - granule_bytes : raw_end, granule_bytes);
}

// Joins memory to the newest region, whose rest gets longer, or makes a new region of it.
void Arena::take_in(const os::Memory& memory) {
  const bool joins = newest_.end != 0 && memory.begin == newest_.raw_end;
  if (joins) {
    // In the middle of fresh memory from now on, which is zero.
    block::header(newest_.end) = 0;
  } else {
    if (newest_.end != 0) retire_newest();
    rest_ = used_to_ = newest_.first = align_up(memory.begin, granule_bytes) + record_bytes;
  }
  if (!joins || memory.zero_from != memory.begin) zero_from_ = memory.zero_from;
  newest_.raw_end = wrapping_add(memory.begin, memory.bytes);
  newest_.end = last_end(newest_.raw_end);
  committed_bytes_ += memory.bytes;
  block::write_end(newest_.end);
  set_rest(rest_, newest_.end);
}

// Its record moves into its memory, and its rest becomes a free block like others.
void Arena::retire_newest() {
  Region& record = at<Region>(newest_.first - record_bytes);
  record = newest_;
  newest_.older = &record;
  const Address rest = rest_;
  const size_t rest_bytes = last_free_bytes();
  newest_.end = 0;
  if (rest_bytes != 0) add_free(rest, rest_bytes);
}

// Questions.

// Shows every block to `visit`, with the end of its region. A size that leads nowhere ends the
// walk: ashlar_check() tells of it.
template <class Visit>
void Arena::visit_blocks(Visit visit) const {
  for (const Region* region = newest_region(); region != nullptr; region = region->older) {
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

const Region* Arena::older_region_of(Address p) const {
  const Region* region = newest_.older;
  while (region != nullptr && (p < region->first || p >= region->end)) region = region->older;
  return region;
}

bool Arena::is_sound_size(size_t size, Address b, const Region& region) {
  return size >= block::least_bytes && size <= region.end - b && size % granule_bytes == 0;
}

bool Arena::is_live(Address p) const {
  const Region* region = region_of(p);
  return region != nullptr && p % granule_bytes == 0 && block::has_seal(p, region->end);
}

}  // namespace ashlar
