// The arena: all memory that the OS layer gave, as blocks with boundary tags (block.h). It serves
// what is too large for a page, the pages themselves, and the allocator's own structures.
//
// It owns the regions (runs of memory, each ended by a header of size 0) and the free blocks. Those
// stand in bins by size (two-level segregated fit: M. Masmano et al., TLSF, ECRTS 2004; best of the
// first few in a bin, as in dlmalloc's trees) and, when they hold whole aligned tiles, also in bins
// by how many, so that a page finds the hole that fits it exactly.
//
// Invariants: the blocks of a region fill [first, end) without a gap; no two neighbours are free;
// a free block is in the bin of its size and of its tiles, but for the *rest*: the free block at
// the end of the newest region. It is in none, is taken last, and gets longer when memory grows.
//
//   Region    first                                                 used_to          end
//   |        |#| block  |#| block  |#| block                 |#| rest: never in use |#|
//             # header; the last one has size 0
//
// Behind used_to and zero_from the rest is zero, but for its size in its last word.
#pragma once

#include "block.h"
#include "fault.h"
#include "size_class.h"

namespace ashlar {

// Stands at the begin of its memory. `raw_end` is the end that the OS layer named, `end` the last
// multiple of a granule before it.
struct Region {
  Region* older;
  Address first;
  Address end;
  Address raw_end;
};

class Arena {
 public:
  // A block of at least `need` bytes, its header included (block::bytes_for), at a multiple of
  // `alignment`, a power of two. 0: no free block fits; see grow().
  Address allocate(size_t need, size_t alignment, block::Owner owner);

  // A block for a page of `tiles` tiles: its payload at a multiple of tile_bytes, the next block's
  // header in the last word of the last tile. 0: none; see grow().
  Address allocate_tiles(size_t tiles);

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

  // What is wrong with `p`, which is in no page, as a live block of the program's; Fault::none if
  // it is one. Reads no memory but ours.
  Fault fault_at(Address p) const;

  // How many bytes from the start of the block allocated last may be anything but zero. Its last
  // word may be, too.
  size_t dirty_bytes(Address b) const { return dirty_end_ - b; }

  size_t committed_bytes() const { return committed_bytes_; }
  size_t grow_count() const { return grow_count_; }
  size_t never_used_bytes() const { return newest_ == nullptr ? 0 : newest_->end - used_to_; }
  size_t last_free_bytes() const;

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
  static constexpr unsigned sub_bits = 3;
  static constexpr unsigned sub_count = 1 << sub_bits;
  static constexpr unsigned row_count = word_bits - lowest_bit(granule_bytes) - sub_bits + 1;
  static constexpr unsigned bin_count = row_count * sub_count;
  static constexpr unsigned tile_bin_count = max_page_tiles + 2;  // the last: more than any page
  static constexpr unsigned looks_per_bin = 8;

  // A list of free blocks threads through two words of each, at an offset of these.
  static constexpr size_t size_link = 0;
  static constexpr size_t tile_link = 2 * word_bytes;

  // What a region costs at most before its first block and behind its last.
  static constexpr size_t region_overhead = sizeof(Region) + 4 * granule_bytes;

  static unsigned bin_of(size_t size);
  static Address place_in(Address b, size_t alignment);
  static unsigned tile_bin_of(Address b, size_t size);
  static void push(Address& head, Address b, size_t offset);
  static void remove(Address& head, Address b, size_t offset);

  void link(Address b, size_t size);
  void unlink(Address b, size_t size);
  unsigned next_filled_bin(unsigned bin) const;
  static bool fits(Address b, size_t size, size_t need, size_t alignment);
  Address best_in_bin(unsigned bin, size_t need, size_t alignment, unsigned looks) const;
  Address best_in_bins(size_t need, size_t alignment, unsigned looks) const;
  Address find(size_t need, size_t alignment) const;
  Address find_tiles(size_t tiles) const;

  Address cut(Address b, size_t alignment, size_t need, block::Owner owner);
  void settle(Address b, size_t size, size_t need, block::Owner owner);
  void add_free(Address b, size_t size);

  bool take_more(size_t missing);
  size_t missing_for(size_t need, size_t alignment, bool alone) const;
  static Address last_end(Address raw_end);
  void extend(const os::Memory& memory);
  void add_region(const os::Memory& memory);

  template <class Visit>
  void visit_blocks(Visit visit) const;
  const Region* region_of(Address p) const;
  static Fault classify(Address p, const Region& region);
  bool can_be_block(Address b) const;
  static bool is_sound_size(size_t size, Address b, const Region& region);
  static Address find_fault_in(const Region& region, size_t& free_seen);
  Address find_fault_in_bins(size_t free_bytes) const;
  Address find_fault_in_tile_bins(size_t free_bytes) const;

  Region* newest_;
  Address used_to_;
  Address zero_from_;
  Address dirty_end_;
  size_t committed_bytes_;
  size_t grow_count_;
  // default_growth_divisor - the divisor, so that zero is the default.
  unsigned divisor_change_;
  bool asked_for_initial_memory_;

  // Which rows have a filled bin, which bins of a row are filled, which tile bins are.
  Word rows_;
  uint8_t subs_[row_count];
  uint32_t tile_bins_filled_;
  Address bins_[bin_count];
  Address tile_bins_[tile_bin_count];
};

extern constinit Arena arena;

}  // namespace ashlar
