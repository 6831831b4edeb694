// The arena: all memory that the OS layer gave, as blocks with boundary tags (block.h). It serves
// what is too large for a page, the pages themselves, and the allocator's own structures.
//
// It owns the regions (runs of memory, each ended by a header of size 0) and the free blocks. Those
// stand in bins by size (two-level segregated fit: M. Masmano et al., TLSF, ECRTS 2004; best of the
// first few in a bin, as in dlmalloc's trees).
//
// Invariants: the blocks of a region fill [first, end) without a gap; no two neighbours are free;
// a free block is in the bin of its size, but for the *rest*: what is free at the end of the newest
// region. It is in none, is taken last, and gets longer when memory grows. A bin that holds a block
// is marked; a mark may outlive the last block, until a search comes by.
//
//   first                                          rest           used_to            end
//   |#| block  |#| block  |#| block               |#| was in use | never in use     |#|
//    # header; the last one has size 0
//
// Behind used_to and zero_from memory is zero.
#pragma once

#include "block.h"
#include "fault.h"
#include "size_class.h"

namespace ashlar {

// `raw_end` is the end that the OS layer named, `end` the last multiple of a granule before it.
// Stands at the begin of its memory; the newest one's record is the arena's.
struct Region {
  const Region* older;
  Address first;
  Address end;
  Address raw_end;
};

class Arena {
 public:
  // A block of at least `need` bytes, its header included (block::bytes_for), at a multiple of
  // `alignment`, a power of two. 0: no free block fits; see grow().
  Address allocate(size_t need, size_t alignment, block::Owner owner);

  void free(Address b);

  // Makes the program's block `b` `need` bytes long where it is. false: it cannot be.
  bool resize(Address b, size_t need);

  // Takes memory, for allocate(need, alignment) to try again; false: refused. What is taken may lie
  // apart from what was there, and be too small then; the last attempt suffices wherever it lies.
  static constexpr unsigned last_attempt = 2;
  bool grow(size_t need, size_t alignment, unsigned attempt);

  // Resizes a block at the end of the memory by taking more behind it. false: it is not the last,
  // or memory was refused or came elsewhere.
  bool is_last(Address b) const;
  bool grow_last(Address b, size_t need);

  // Whether a live block of the program's begins at `p`, which is in no page; and if none does,
  // what is there. Read no memory but ours.
  bool is_live(Address p) const;
  Fault fault_at(Address p) const;

  // How many bytes from the start of the block allocated last may be anything but zero, if it has
  // so many.
  size_t dirty_bytes(Address b) const;

  size_t committed_bytes() const { return committed_bytes_; }
  size_t grow_count() const { return grow_count_; }
  size_t never_used_bytes() const { return newest_.end - used_to_; }
  // Of the rest.
  size_t last_free_bytes() const { return newest_.end - rest_; }

  // What a walk over all blocks finds.
  struct Census {
    size_t live_blocks;  // the program's
    size_t live_bytes;   // usable ones of those
    size_t free_bytes;
    size_t free_blocks;
    size_t largest_free_bytes;
  };
  Census count() const;
  // counts[i]: free blocks of 2^i to 2^(i+1) - 1 bytes; word_bits elements.
  void count_free(size_t* counts) const;

  // Growth takes at least committed / divisor; 0: no more than is needed. Returns the one before.
  unsigned set_growth_divisor(unsigned divisor);

  // Validates everything: the address of the first fault, or 0.
  Address find_fault() const;

 private:
  static constexpr unsigned mark_words = eighths(~size_t(0) / granule_bytes) / word_bits + 1;
  static constexpr unsigned bin_count = mark_words * word_bits;
  // A search may go on from the bin behind the last one.
  static_assert(eighths(~size_t(0) / granule_bytes) + 1 < bin_count);
  // Blocks of a bin that a search looks at before it takes the rest; where a page shall lie more of
  // them, since only some have its alignment.
  static constexpr unsigned looks_per_bin = 8;
  static constexpr unsigned looks_for_page = 64;

  // Of a region before its first block: the record, a header. And at most before and behind all.
  static constexpr size_t record_bytes = align_up(sizeof(Region) + word_bytes, granule_bytes);
  static constexpr size_t region_overhead = record_bytes + 3 * granule_bytes;

  static unsigned bin_of(size_t size);
  static Address place_in(Address b, size_t alignment);

  void link(Address b, size_t size);
  static void unlink(Address b);
  size_t free_bytes_at(Address b) const;
  unsigned next_marked_bin(unsigned bin) const;
  void unmark(unsigned bin);
  static bool fits(Address b, size_t size, size_t need, size_t alignment);
  static Address best_in_bin(Address first, size_t need, size_t alignment, unsigned looks);
  Address best_in_bins(size_t need, size_t alignment, unsigned looks);
  Address find(size_t need, size_t alignment);

  void settle(Address b, size_t size, size_t need, block::Owner owner);
  void set_rest(Address b, Address region_end);
  void add_free(Address b, size_t size);

  bool take_more(size_t missing);
  size_t missing_for(size_t need, size_t alignment, bool alone) const;
  static Address last_end(Address raw_end);
  void take_in(const os::Memory& memory);
  void retire_newest();
  const Region* newest_region() const { return newest_.end == 0 ? nullptr : &newest_; }

  template <class Visit>
  void visit_blocks(Visit visit) const;
  fast_path const Region* region_of(Address p) const {
    const bool in_newest = wrapping_subtract(p, newest_.first) < newest_.end - newest_.first;
    return in_newest ? &newest_ : older_region_of(p);
  }
  slow_path const Region* older_region_of(Address p) const;
  bool can_be_block(Address b) const;
  static bool is_sound_size(size_t size, Address b, const Region& region);
  Address find_fault_in(const Region& region, size_t& free_seen) const;
  Address find_fault_in_bins(size_t free_bytes) const;

  Region newest_;
  Address rest_;         // where it begins, or the newest region's end
  Address used_to_;      // the highest end in the newest region that a block ever had
  Address used_before_;  // used_to_ before the last block was allocated
  Address zero_from_;
  size_t committed_bytes_;
  size_t grow_count_;
  // default_growth_divisor - the divisor, so that zero is the default.
  unsigned divisor_change_;
  bool asked_for_initial_memory_;

  Word marks_[mark_words];   // a bit for each bin
  unsigned marked_words_;    // a bit for each of these that isn't 0
  Address bins_[bin_count];  // the first free block of each
};

extern constinit Arena arena;

}  // namespace ashlar
