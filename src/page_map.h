// The page map: which page an address belongs to, for every tile (4 KiB) of the address space.
//
// Two levels. The root has one word per range, a range's leaf one word per tile:
//
//   address:   | range (index into the root) | tile (index into the leaf) | offset: 12 bits |
//   wasm32:      10 bits, root 4 KiB           10 bits, leaf 4 KiB for 4 MiB
//   64-bit:      47 - 12 - leaf bits           os::map_leaf_bits; touched only where pages are
//
//   root word:  0, or address of the range's leaf - address of the root
//   leaf word:  0, or address of the page's descriptor
//
// A lookup is free of branches: for a range without a leaf it reads a word of the root as if it
// were a leaf's. Root and leaves stand at multiples of a granule and descriptors between two of
// them, so one bit alone says "a page". No other memory is read, whatever the address. A leaf
// exists only while pages are in its range; the word behind its entries counts their tiles.
//
// A known technique (tcmalloc's and mimalloc's page maps); the root that stands in for missing
// leaves is ours.
#pragma once

#include "config.h"
#include "raw.h"

namespace ashlar {

struct Page;

class PageMap {
 public:
  static constexpr size_t leaf_entries = size_t(1) << os::map_leaf_bits;
  static constexpr size_t leaf_bytes = (leaf_entries + 1) * word_bytes;

  // The word of any address at all. On 64 bits addresses beyond the map's reach alias others: the
  // page's own test of its blocks tells them apart.
  fast_path Word word_of(Address p) const {
    const Address place = address_of(root_) + tile_index(p) * word_bytes;
    return word_at(wrapping_add(place, root_[range_index(p)]));
  }
  static fast_path bool is_page(Word word) { return (word & page_mark) != 0; }
  static fast_path Page& page_of(Word word) { return at<Page>(word); }

  // A descriptor stands so many bytes behind a multiple of a granule.
  static constexpr size_t page_mark = granule_bytes / 2;

  // The range of `p` needs a leaf before a page can be set there. `memory`: leaf_bytes, at the
  // alignment of a word.
  bool has_leaf(Address p) const { return root_[range_index(p)] != 0; }
  void give_leaf(Address p, Address memory);
  // Its memory back, if it is there and holds no page; otherwise 0.
  Address take_unused_leaf(Address p);

  // The tiles from `start` belong to a page; or, with null, no longer.
  void set_page(Address start, size_t tiles, Page* page);

 private:
  static constexpr unsigned tile_shift = 12;
  static_assert(tile_bytes == size_t(1) << tile_shift);
  static constexpr size_t root_entries = size_t(1)
                                         << (os::address_bits - tile_shift - os::map_leaf_bits);
  static_assert(root_entries >= leaf_entries, "a word of the root stands in for any of a leaf");

  static fast_path size_t tile_index(Address p) { return (p >> tile_shift) & (leaf_entries - 1); }
  static fast_path size_t range_index(Address p) {
    return (p >> (tile_shift + os::map_leaf_bits)) & (root_entries - 1);
  }

  Address leaf_of(Address p) const {
    return wrapping_add(address_of(root_), root_[range_index(p)]);
  }
  static Word& tile_count(Address leaf) { return word_at(leaf + leaf_entries * word_bytes); }

  alignas(granule_bytes) Word root_[root_entries];
};

extern constinit PageMap page_map;

}  // namespace ashlar
