// A page: whole aligned tiles, cut into equal blocks of one size class, without headers. This is
// its descriptor, which stands elsewhere.
//
//   start                      start + carved * size                       the page's last word
//   | block | block | block |  | never handed out ...            | tail  | next header |
//
// A free block's first word links to the next free one; its second word is its tag, made of its
// address, which a live block does not have (but by chance: then the list is asked). A block that
// was never handed out has a tag without the lowest bit.
//
// Invariant:  used = allocated - (goal - due)
// malloc counts `allocated` up, free counts `due` down and takes the slow path when it is 0. The
// slow path sets `due` so that nothing can have happened before: to 1 for a full page, to `used`
// for one among others (it cannot be empty earlier), to `never` for one found alone in its ring.
// So free has one test for both of its events, and the statistics are exact at no cost.
//
// Which blocks there are: with W bits in a word, d the block size, m = floor(2^W / d) + 1 and
// e = m * d - 2^W (so 1 <= e <= d), an offset q * d + r gives (q * d + r) * m = q * e + r * m
// modulo 2^W. That is less than (blocks carved) * e just when r = 0 and q is one of those: one
// multiplication and one compare. size_class.h proves for each class that no sum passes 2^W.
//
// Known techniques: free lists per page (D. Leijen et al., mimalloc, 2019); the test for a multiple
// by multiplication (D. Lemire et al., Faster remainder by direct computation, 2019); that its
// limit tells how many multiples count is ours.
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

  Address free;       // first free block, or 0
  Address start;      // of the first block
  size_t multiplier;  // m
  size_t limit;       // carved * e
  uint32_t due;       // frees until the slow path is due
  uint32_t allocated;
  uint32_t goal;      // what `due` was set to
  uint32_t carved;    // blocks in the free list or handed out before
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

  static Word fresh_tag_of(Address b) { return tag_of(b) - 1; }
  static fast_path Word tag_of(Address b) { return wrapping_add(b, Word(0x9e3779b97f4a7c15u)); }

  // Whether a block that was carved starts at `b`, which the page map finds in this page.
  fast_path bool is_carved(Address b) const {
    return wrapping_multiply(wrapping_subtract(b, start), multiplier) < limit;
  }

  // Whether a live block starts at `b`. A wrong no is possible (then is_free() decides), a wrong
  // yes only for a free block that was written to. Reads `b` only where a block is.
  fast_path bool looks_live(Address b) const {
    return is_carved(b) && (at<FreeBlock>(b).tag | 1) != tag_of(b);
  }

  fast_path void pop(Address b) {
    FreeBlock& block = at<FreeBlock>(b);
    free = block.next;
    allocated = wrapping_add32(allocated, 1);
    if constexpr (profile.catches_misuse) block.tag = 0;
  }

  static fast_path void write_free(Address b, Address next, Word tag) {
    FreeBlock& block = at<FreeBlock>(b);
    block.next = next;
    if constexpr (profile.catches_misuse) block.tag = tag;
  }

  fast_path void push(Address b) {
    write_free(b, free, tag_of(b));
    free = b;
  }

  void set_up(Address start, size_t tiles, SizeClass c);

  // `ring` points to the first page of a ring, or is null.
  void join(Page*& ring);
  void leave(Page*& ring);

  // Makes a free list, which is empty, of blocks that were never handed out. false: there are none
  // left.
  bool carve_more();

  bool is_free(Address b) const;

  // Address of a fault in the page, or 0.
  Address find_fault() const;
};

}  // namespace ashlar
