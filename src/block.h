// A block of the arena: boundary tags.
//
//        block - W      block                                          next - W    next
//   ... | header       | payload, size - W bytes                      | header     | payload
//   in use:  header = size | flags, sealed
//   free:    header = size | flags; payload = next of its bin, where that is linked from ... and in
//            its last word (at next - 2W) the size again; the rest (arena.h) has a header only
//
// W is a word. Sizes count the header and are multiples of the granule; blocks (payloads) begin at
// multiples of the granule, so the header lies just below. Two free blocks are never neighbours.
//
// The seal says: a block of the program's, in use, starts here. It is made of the block's address,
// so that nothing else passes for a header, stale ones and copies included: the upper 16 bits of
// the header; on 32 bits, where a size from 64 KiB up leaves no room for that, the whole last word
// of the block. Blocks of the allocator's own (pages, descriptors, leaves)
// have none.
//
// Known technique: boundary tags, D. Knuth, TAOCP 1, 2.5; the header is dlmalloc's, the seal ours.
#pragma once

#include "config.h"
#include "raw.h"

namespace ashlar::block {

constexpr Word in_use = 1;
constexpr Word previous_in_use = 2;
constexpr Word sealed = 4;
constexpr Word flags = in_use | previous_in_use | sealed;
static_assert(granule_bytes > flags);

constexpr unsigned seal_shift = word_bits - 16;
constexpr Word sealed_limit = Word(1) << seal_shift;
constexpr size_t least_bytes = max(4 * word_bytes, granule_bytes);

// Whose a block in use is.
enum class Owner { program, allocator };

// On 64 bits no block is so large.
fast_path constexpr bool is_sealed_at_end(size_t size) {
  return word_bytes == 4 && size >= sealed_limit;
}

// The arena block that serves a request of `bytes`.
fast_path constexpr size_t bytes_for(size_t bytes) {
  const size_t size = align_up(bytes + word_bytes, granule_bytes);
  if (is_sealed_at_end(size)) return align_up(bytes + 2 * word_bytes, granule_bytes);
  return max(size, least_bytes);
}

fast_path Word& header(Address b) { return word_at(b - word_bytes); }

fast_path bool is_in_use(Address b) { return (header(b) & in_use) != 0; }
fast_path bool is_previous_in_use(Address b) { return (header(b) & previous_in_use) != 0; }

fast_path size_t size_of(Address b) {
  const Word h = header(b);
  return (h & sealed) != 0 ? h & (sealed_limit - 1) & ~flags : h & ~flags;
}

// Of a block that is known to be free, so that there is no seal to look for.
fast_path size_t free_size_of(Address b) { return header(b) & ~flags; }
fast_path Word& last_word(Address b, size_t size) { return word_at(b + size - 2 * word_bytes); }
fast_path size_t previous_free_size(Address b) { return last_word(b, 0); }

// What the program may use of its block.
fast_path constexpr size_t usable_of_size(size_t size) {
  return size - (is_sealed_at_end(size) ? 2 : 1) * word_bytes;
}
fast_path size_t usable_bytes(Address b) { return usable_of_size(size_of(b)); }

// Of the product's upper bits, each depends on every bit of the address.
fast_path Word seal_in_header(Address b) {
  return wrapping_multiply(b, Word(0x9e3779b97f4a7c15u)) & ~(sealed_limit - 1);
}
fast_path Word seal_at_end(Address b, size_t size) { return b ^ size ^ Word(0x9e3779b9); }

// Whether `b` carries the seal; it and the header before it lie in a region that ends at `end`.
fast_path bool has_seal(Address b, Address end) {
  const Word h = header(b);
  constexpr Word tested = ~(sealed_limit - 1) | in_use | sealed;
  if ((h & tested) == (seal_in_header(b) | in_use | sealed)) return true;
  const size_t size = h & ~flags;
  return is_sealed_at_end(size) && (h & (in_use | sealed)) == in_use && size <= end - b &&
         last_word(b, size) == seal_at_end(b, size);
}

// Of a block in use: whether it is the program's, by less than its seal. The allocator's own are
// never so large that they would be sealed at the end.
fast_path bool should_be_sealed(Address b) {
  return (header(b) & sealed) != 0 || is_sealed_at_end(size_of(b));
}

fast_path void write_in_use(Address b, size_t size, Owner owner) {
  Word h = size | in_use | (header(b) & previous_in_use);
  if (owner == Owner::program) {
    if (is_sealed_at_end(size)) {
      last_word(b, size) = seal_at_end(b, size);
    } else {
      h |= sealed | seal_in_header(b);
    }
  }
  header(b) = h;
}

// The block before a free one is always in use.
fast_path void write_free(Address b, size_t size) {
  header(b) = size | previous_in_use;
  last_word(b, size) = size;
  header(b + size) &= ~previous_in_use;
}

// Ends a region: a header of size 0, in use for ever.
fast_path void write_end(Address end) { header(end) = in_use | previous_in_use; }

}  // namespace ashlar::block
