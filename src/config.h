// Build profiles: each is one constexpr struct. The build names one with ASHLAR_PROFILE, and the
// core asks it with `if constexpr`.
#pragma once

#include "os.h"

#ifndef ASHLAR_PROFILE
#define ASHLAR_PROFILE fast
#endif

#define ASHLAR_TEXT_OF(x) #x
#define ASHLAR_TEXT(x) ASHLAR_TEXT_OF(x)

namespace ashlar {

struct Profile {
  // Small blocks live in pages of equal blocks. Without, every block comes from the arena.
  bool has_pages;
  // Every address given back is tested: is it the start of a live block?
  bool catches_misuse;
  // A free block is tested before it joins one that is freed, so that a write beyond a block's end
  // does not make the arena write over others.
  bool checks_neighbours;
  // A fault is named by a number (see Fault in fault.h) to save its words.
  bool numeric_messages;
};

namespace profiles {
constexpr Profile fast{.has_pages = true,
                       .catches_misuse = true,
                       .checks_neighbours = true,
                       .numeric_messages = false};
constexpr Profile bare{.has_pages = true,
                       .catches_misuse = false,
                       .checks_neighbours = false,
                       .numeric_messages = true};
constexpr Profile small{.has_pages = false,
                        .catches_misuse = true,
                        .checks_neighbours = false,
                        .numeric_messages = true};
constexpr Profile chosen = ASHLAR_PROFILE;
constexpr char chosen_name[] = ASHLAR_TEXT(ASHLAR_PROFILE);
}  // namespace profiles

constexpr Profile profile = profiles::chosen;

// Every block begins at a multiple of this.
constexpr size_t granule_bytes = os::alignment;
static_assert(granule_bytes == 8 || granule_bytes == 16, "ashlar: alignment must be 8 or 16");
static_assert(granule_bytes >= 2 * word_bytes || word_bytes == 4,
              "ashlar: a free block of one granule must hold two words");

// The unit of the page map, and what the blocks of a page are cut from.
constexpr size_t tile_bytes = 4096;

// Largest request that is served from a page.
constexpr size_t small_max_bytes = 1024;

// Larger requests are refused: their ends could not be told apart from their starts.
constexpr size_t max_request_bytes =
    os::may_pass_half ? ~size_t(0) - 4 * os::grow_unit_bytes : (~size_t(0) >> 1) - 1;

// Memory grows by at least this part of what is held: 1/16.
constexpr unsigned default_growth_divisor = 16;

}  // namespace ashlar
