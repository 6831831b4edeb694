// The page map: what lies at an address, for every tile (4 KiB) of the address space.
//
// Two levels. The root has one word per range, the ranges' leaves one word per tile:
//
//   address:   | range (index into the root) | tile (index into the leaf) | offset: 12 bits |
//   wasm32:      10 bits, root 4 KiB           10 bits, leaf 4 KiB per 4 MiB
//   64-bit:      47 - 12 - leaf bits           os::map_leaf_bits; both only touched where used
//
//   root word:  0              nothing of this range is ours
//               whole_arena    what is ours of it is arena, and no block starts there: no leaf
//               otherwise      address of the leaf - address of the root
//   leaf word:  0              not ours
//               odd            address of the page's descriptor + 1
//               even           arena: 2 + 4 * index of the first granule where a block starts in
//                              this tile (granules_per_tile: none does)
//
// The fast path finds a page without a branch: for a range without a leaf it reads a root word as
// if it were a leaf's, and those are even. So "odd" alone says "a page", and everything else takes
// the slow path, which asks exactly. No memory that is not ours is ever read.
//
// A known technique (tcmalloc's and mimalloc's page maps); the states of the root are ours.
#pragma once

#include "raw.h"
#include "config.h"

namespace ashlar {

struct Page;

enum class Place : unsigned { foreign, page, arena };

class PageMap {
 public:
  static constexpr size_t leaf_entries = size_t(1) << os::map_leaf_bits;
  static constexpr size_t leaf_bytes = leaf_entries * word_bytes;
  static constexpr size_t range_bytes = leaf_entries * tile_bytes;

  // The word that the fast path tests: odd for a page. Any address may be asked.
  fast_path Word word_of(Address p) const {
    const Address base = address_of(root_) + tile_index(p) * word_bytes;
    return word_at(wrapping_add(base, root_[range_index(p)]));
  }
  static fast_path bool is_page(Word word) { return (word & 1) != 0; }
  static fast_path Page& page_of(Word word) { return at<Page>(word - 1); }

  // The exact answer, for any address. At the edge of a region it may say arena for an address
  // beyond the edge: ask the region.
  Place place_of(Address p) const;

  // First block that starts in the tile of `p`, or 0; the place is arena.
  Address first_start(Address p) const;

  bool has_leaf(Address p) const { return names_leaf(root_[range_index(p)]); }
  bool is_known(Address p) const { return root_[range_index(p)] != nothing; }

  // Gives the range of `p` a leaf, in which nothing is ours yet. `memory`: leaf_bytes.
  void give_leaf(Address p, Address memory);

  // [begin, end) is ours, and no block starts there. Ranges without a leaf stay without.
  void add_arena(Address begin, Address end);

  // The tiles from `start` belong to a page, or to the arena again (no block starts there). Their
  // ranges have leaves.
  void set_page(Address start, size_t tiles, Page& page);
  void set_arena(Address start, size_t tiles);

  // A block starts at `block`, or no longer does: then `next` is the first after it, or 0. The range
  // has a leaf.
  void add_start(Address block);
  void remove_start(Address block, Address next);

 private:
  static constexpr unsigned tile_shift = 12;
  static_assert(tile_bytes == size_t(1) << tile_shift);
  static constexpr size_t root_entries =
      size_t(1) << (os::address_bits - tile_shift - os::map_leaf_bits);
  static_assert(root_entries >= leaf_entries, "a root word stands in for any word of a leaf");

  static constexpr Word nothing = 0;
  // Makes the fast path read the root one word further on, where all words are even as well.
  static constexpr Word whole_arena = word_bytes;

  static constexpr size_t granules_per_tile = tile_bytes / granule_bytes;
  static constexpr Word not_ours = 0;
  static constexpr Word no_start = 2 + 4 * granules_per_tile;

  static fast_path size_t tile_index(Address p) { return (p >> tile_shift) & (leaf_entries - 1); }
  static fast_path size_t range_index(Address p) {
    return (p >> (tile_shift + os::map_leaf_bits)) & (root_entries - 1);
  }
  static bool names_leaf(Word root_word) {
    return root_word != nothing && root_word != whole_arena;
  }
  Word& leaf_word(Address p) {
    const Address leaf = wrapping_add(address_of(root_), root_[range_index(p)]);
    return word_at(leaf + tile_index(p) * word_bytes);
  }

  // One word more than ranges, for whole_arena of the last one.
  Word root_[root_entries + 1];
};

extern constinit PageMap page_map;

}  // namespace ashlar
