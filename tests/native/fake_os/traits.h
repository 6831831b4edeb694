// Traits of the fake OS: linear memory inside a native process.
#pragma once

#ifndef ASHLAR_ALIGNMENT
#define ASHLAR_ALIGNMENT 16
#endif

namespace ashlar::os {

inline constexpr size_t alignment = ASHLAR_ALIGNMENT;
inline constexpr size_t grow_unit_bytes = 65536;
inline constexpr unsigned address_bits = sizeof(void*) == 8 ? 47 : 32;
inline constexpr unsigned map_leaf_bits = sizeof(void*) == 8 ? 11 : 10;
inline constexpr bool may_pass_half = sizeof(void*) == 4;
inline constexpr bool has_threads = false;

static_assert(alignment == 16 || (alignment == 8 && sizeof(void*) == 4));

}  // namespace ashlar::os
