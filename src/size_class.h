// Size classes: which block sizes pages are cut into. Pure arithmetic, proven below for every size.
//
// Up to 16 granules there is one class per granule, then 8 per doubling (at most 1/8 of a block
// is rounding). A page of a class is `tiles` tiles long: the shortest that wastes at most 3 % of
// it.
#pragma once

#include "config.h"

namespace ashlar {

// A strong index: it converts to a number only where one is asked for.
struct SizeClass {
  unsigned index;
};

constexpr size_t small_max_granules = small_max_bytes / granule_bytes;

fast_path constexpr size_t granules_for(size_t bytes) {
  return (bytes + granule_bytes - 1) / granule_bytes;
}

// For 1 <= granules <= small_max_granules.
constexpr SizeClass class_of_granules(size_t granules) { return {eighths(granules - 1)}; }

constexpr size_t block_granules(SizeClass c) {
  if (c.index < 16) return c.index + 1;
  const unsigned above = c.index - 16;
  return size_t(above % 8 + 9) << (above / 8 + 1);
}

constexpr size_t block_bytes_of(SizeClass c) { return block_granules(c) * granule_bytes; }

constexpr unsigned class_count = class_of_granules(small_max_granules).index + 1;

// A request of 0 bytes gets a block of one granule.
constexpr SizeClass class_of(size_t bytes) {
  return class_of_granules(max(granules_for(bytes), 1));
}

// The header of the arena block that follows stands in a page's last word.
constexpr size_t page_payload_bytes(size_t tiles) { return tiles * tile_bytes - word_bytes; }

constexpr size_t max_page_tiles = 15;

constexpr bool wastes_little(size_t block_bytes, size_t tiles) {
  const size_t lost = page_payload_bytes(tiles) % block_bytes + word_bytes;
  return lost * 100 <= tiles * tile_bytes * 3;
}

constexpr size_t shortest_page_tiles(SizeClass c) {
  size_t tiles = 1;
  while (tiles < max_page_tiles && !wastes_little(block_bytes_of(c), tiles)) ++tiles;
  return tiles;
}

// floor(2^W / d) + 1, by which page.h finds the multiples of d.
constexpr size_t multiplier_of(size_t d) { return wrapping_subtract(0, d) / d + 2; }

constexpr bool tells_multiples(size_t block_bytes) {
  const size_t m = multiplier_of(block_bytes);
  const size_t e = wrapping_multiply(m, block_bytes);
  const size_t most_blocks = max_page_tiles * tile_bytes / block_bytes;
  return e != 0 && e <= block_bytes && (most_blocks + 1) * e <= m;
}

// What a class is made of, found at compile time.
struct ClassTable {
  uint8_t tiles[class_count];
};

constexpr ClassTable make_class_table() {
  ClassTable table{};
  for (unsigned i = 0; i < class_count; ++i) table.tiles[i] = uint8_t(shortest_page_tiles({i}));
  return table;
}

constexpr ClassTable class_table = make_class_table();

constexpr bool every_class_is_sound() {
  for (unsigned i = 0; i < class_count; ++i) {
    if (!wastes_little(block_bytes_of({i}), class_table.tiles[i])) return false;
    if (!tells_multiples(block_bytes_of({i}))) return false;
    if (page_payload_bytes(class_table.tiles[i]) < 2 * block_bytes_of({i})) return false;
  }
  for (size_t n = 1; n <= small_max_granules; ++n) {
    const SizeClass c = class_of_granules(n);
    if (block_granules(c) < n) return false;
    if (c.index > 0 && block_granules({c.index - 1}) >= n) return false;
  }
  return block_granules({class_count - 1}) == small_max_granules;
}
static_assert(every_class_is_sound(), "ashlar: a size class is too small, unused or wasteful");

}  // namespace ashlar
