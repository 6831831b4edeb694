#include "page_map.h"

namespace ashlar {

constinit PageMap page_map{};

void PageMap::give_leaf(Address p, Address memory) {
  clear_bytes(memory, leaf_bytes);
  root_[range_index(p)] = wrapping_subtract(memory, address_of(root_));
}

Address PageMap::take_unused_leaf(Address p) {
  if (!has_leaf(p) || tile_count(leaf_of(p)) != 0) return 0;
  const Address leaf = leaf_of(p);
  root_[range_index(p)] = 0;
  return leaf;
}

void PageMap::set_page(Address start, size_t tiles, Page* page) {
  for (Address tile = start; tiles != 0; tile += tile_bytes, --tiles) {
    const Address leaf = leaf_of(tile);
    word_at(leaf + tile_index(tile) * word_bytes) = page == nullptr ? 0 : address_of(page);
    if (page == nullptr) {
      --tile_count(leaf);
    } else {
      ++tile_count(leaf);
    }
  }
}

}  // namespace ashlar
