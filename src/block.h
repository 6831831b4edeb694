// A block of the arena: boundary tags.
//
//        block - W      block                                          next - W    next
//   ... | header       | payload, size - W bytes                      | header     | payload
//   in use:  header = size | flags, sealed when it fits
//   free:    header = size | flags; payload = next free, previous free [, the same two for the
//            list by tiles] ... and in its last word (at next - 2W) the size again
//
// W is a word. Sizes count the header and are multiples of the granule; blocks (payloads) begin at
// multiples of the granule, so the header lies just below. Two free blocks are never neighbours.
//
// Sealed: the upper 16 bits of an in-use block's header are made of its address, so that what a
// program left there by chance does not pass for a header. Internal blocks (the allocator's own)
// are never sealed, and so never pass for a program's. On 32 bits only sizes below 64 KiB leave
// room for a seal; larger blocks are confirmed by walking their tile.
//
// Known technique: boundary tags, D. Knuth, TAOCP 1, 2.5; the header's layout is dlmalloc's, the
// seal is ours.
#pragma once

#include "raw.h"
#include "config.h"

namespace ashlar::block {

constexpr Word in_use = 1;
constexpr Word previous_in_use = 2;
constexpr Word sealed = 4;
constexpr Word flags = in_use | previous_in_use | sealed;
static_assert(granule_bytes > flags);

constexpr unsigned seal_shift = word_bits - 16;
constexpr size_t sealed_limit = size_t(1) << seal_shift;
constexpr size_t least_bytes = max(4 * word_bytes, granule_bytes);

enum class Owner { program, allocator };

// What an arena block costs that serves a request of `bytes`.
fast_path constexpr size_t bytes_for(size_t bytes) {
  return max(align_up(bytes + word_bytes, granule_bytes), least_bytes);
}

fast_path Word& header(Address b) { return word_at(b - word_bytes); }

fast_path bool is_in_use(Address b) { return (header(b) & in_use) != 0; }
fast_path bool is_previous_in_use(Address b) { return (header(b) & previous_in_use) != 0; }

fast_path size_t size_in(Word header) {
  return (header & sealed) != 0 ? header & (sealed_limit - 1) & ~flags : header & ~flags;
}
fast_path size_t size_of(Address b) { return size_in(header(b)); }
fast_path size_t usable_bytes(Address b) { return size_of(b) - word_bytes; }

// Size of a block that is known to be free: no seal to look for.
fast_path size_t free_size_of(Address b) { return header(b) & ~flags; }
fast_path size_t previous_free_size(Address b) { return word_at(b - 2 * word_bytes); }

fast_path Word seal_of(Address b) {
  constexpr Word mix = 0x5bd1;
  return ((b / granule_bytes) ^ mix) << seal_shift;
}

// Whether the header says: a program's block in use starts here. Certain enough to go on without
// walking the tile; reads the header, which must lie in our memory.
fast_path bool has_seal(Address b) {
  constexpr Word tested = ~(sealed_limit - 1) | in_use | sealed;
  return (header(b) & tested) == (seal_of(b) | in_use | sealed);
}

fast_path bool is_programs(Address b) {
  return (header(b) & sealed) != 0 || (word_bytes == 4 && size_of(b) >= sealed_limit);
}

fast_path void write_in_use(Address b, size_t size, Owner owner) {
  const Word kept = header(b) & previous_in_use;
  const bool seals = owner == Owner::program && size < sealed_limit;
  header(b) = size | in_use | kept | (seals ? seal_of(b) | sealed : 0);
}

// The block before a free one is always in use.
fast_path void write_free(Address b, size_t size) {
  header(b) = size | previous_in_use;
  word_at(b + size - 2 * word_bytes) = size;
  header(b + size) &= ~previous_in_use;
}

// Ends a region: a header of size 0 that is in use for ever.
fast_path void write_end(Address end, Word previous) { header(end) = in_use | previous; }

}  // namespace ashlar::block
