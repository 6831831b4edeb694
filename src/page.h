// A page: whole aligned tiles, cut into equal blocks of one size class, without headers. This is
// its descriptor, which stands elsewhere.
//
//   start                      start + carved * size                       the page's last word
//   | block | block | block |  | never handed out ...            | tail  | next header |
//
// A free block's first word links to the next free one; its second word is its tag, made of its
// address, which a live block does not have (but by chance: then the list is asked).
//
// Invariant:  used = allocated - (goal - due)
// malloc counts `allocated` up, free counts `due` down and takes the slow path when it is 0. The
// slow path sets `due` so that nothing can have happened before: to 1 for a full page, to `used`
// for one among others (it cannot be empty earlier), to `never` for one found alone in its ring.
// So free has one test for both of its events, and the statistics are exact at no cost.
//
// Known techniques: free lists per page (D. Leijen et al., mimalloc, 2019); the test for a
// multiple by the inverse modulo a power of two (H. Warren, Hacker's Delight, 10-17).
#pragma once

#include "raw.h"
#include "size_class.h"

namespace ashlar {

struct __attribute__((may_alias)) FreeBlock {
  Word next;
  Word tag;
};

struct Page {
  static constexpr uint32_t never = ~uint32_t(0);

  Address free;     // first free block, or 0
  Address start;    // of the first block
  size_t inverse;   // of the odd part of the block size
  unsigned shift;   // trailing zero bits of the block size
  uint32_t carved;  // blocks in the free list or handed out before
  uint32_t due;     // frees until the slow path is due
  uint32_t allocated;
  uint32_t goal;      // what `due` was set to
  uint32_t capacity;  // blocks that fit
  Page* next;         // in one of its class's two rings: the pages with room, and the full ones
  Page* previous;
  uint8_t class_index;
  uint8_t tiles;
  bool full;
  bool gift;  // given for its class's trips to the arena, not for its live bytes

  SizeClass size_class() const { return {class_index}; }
  size_t block_bytes() const { return block_bytes_of(size_class()); }
  uint32_t freed() const { return wrapping_subtract32(goal, due); }
  uint32_t used() const { return wrapping_subtract32(allocated, freed()); }

  static fast_path Word tag_of(Address b) { return b ^ Word(0x9e3779b97f4a7c15u); }

  // Index of the block that starts at `b`. Not less than any capacity if none does.
  fast_path size_t index_of(Address b) const {
    return rotate_right(wrapping_multiply(wrapping_subtract(b, start), inverse), shift);
  }

  // Whether a live block starts at `b`. A wrong no is possible (then is_free() decides), a wrong
  // yes only for a free block that was written to. Reads `b` only where a block is.
  fast_path bool looks_live(Address b) const {
    return index_of(b) < carved && at<FreeBlock>(b).tag != tag_of(b);
  }

  fast_path void pop(Address b) {
    FreeBlock& block = at<FreeBlock>(b);
    free = block.next;
    allocated = wrapping_add32(allocated, 1);
    if constexpr (profile.catches_misuse) block.tag = 0;
  }

  fast_path void push(Address b) {
    FreeBlock& block = at<FreeBlock>(b);
    block.next = free;
    if constexpr (profile.catches_misuse) block.tag = tag_of(b);
    free = b;
  }

  void set_up(Address start, size_t tiles, SizeClass c);

  // `ring` points to the first page of a ring, or is null.
  void join(Page*& ring);
  void leave(Page*& ring);

  // Puts blocks that were never handed out into the free list. false: there are none left.
  bool carve_more();

  bool is_free(Address b) const;

  // Address of a fault in the page, or 0.
  Address find_fault() const;
};

}  // namespace ashlar
