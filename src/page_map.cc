#include "page_map.h"

namespace ashlar {

constinit PageMap page_map{};

Place PageMap::place_of(Address p) const {
  // Addresses above the map's reach would alias others.
  if constexpr (os::address_bits < word_bits) {
    if ((p >> os::address_bits) != 0) return Place::foreign;
  }
  const Word root_word = root_[range_index(p)];
  if (root_word == nothing) return Place::foreign;
  if (root_word == whole_arena) return Place::arena;
  const Word word = word_of(p);
  if (word == not_ours) return Place::foreign;
  return is_page(word) ? Place::page : Place::arena;
}

Address PageMap::first_start(Address p) const {
  if (!has_leaf(p)) return 0;
  const Word word = word_of(p);
  return word == no_start ? 0 : align_down(p, tile_bytes) + (word >> 2) * granule_bytes;
}

void PageMap::give_leaf(Address p, Address memory) {
  clear_bytes(memory, leaf_bytes);
  root_[range_index(p)] = wrapping_subtract(memory, address_of(root_));
}

void PageMap::add_arena(Address begin, Address end) {
  Address tile = align_down(begin, tile_bytes);
  const Address last = align_down(end - 1, tile_bytes);
  for (;;) {
    Word& root_word = root_[range_index(tile)];
    if (names_leaf(root_word)) {
      if (leaf_word(tile) == not_ours) leaf_word(tile) = no_start;
    } else {
      root_word = whole_arena;
      tile = align_down(tile, range_bytes) + (range_bytes - tile_bytes);
    }
    if (tile >= last) return;
    tile += tile_bytes;
  }
}

void PageMap::set_page(Address start, size_t tiles, Page& page) {
  for (size_t i = 0; i < tiles; ++i) leaf_word(start + i * tile_bytes) = address_of(&page) + 1;
}

void PageMap::set_arena(Address start, size_t tiles) {
  for (size_t i = 0; i < tiles; ++i) leaf_word(start + i * tile_bytes) = no_start;
}

void PageMap::add_start(Address block) {
  Word& word = leaf_word(block);
  const Word start = 2 + 4 * ((block % tile_bytes) / granule_bytes);
  if (start < word) word = start;
}

void PageMap::remove_start(Address block, Address next) {
  Word& word = leaf_word(block);
  if (word != 2 + 4 * ((block % tile_bytes) / granule_bytes)) return;
  const bool same_tile = next != 0 && next / tile_bytes == block / tile_bytes;
  word = same_tile ? 2 + 4 * ((next % tile_bytes) / granule_bytes) : no_start;
}

}  // namespace ashlar
