// What the core may assume about linear memory.
#pragma once

#include "base.h"

namespace ashlar::os {

static_assert(sizeof(void*) == 4, "ashlar: wasm64 is not supported yet");
#if defined(__wasm_atomics__)
static_assert(false,
              "ashlar: builds with shared memory (-matomics, -pthread) are not supported yet");
#endif

#if defined(__EMSCRIPTEN__)
constexpr size_t alignment = 8;
#else
constexpr size_t alignment = 16;
#endif
static_assert(alignment >= alignof(max_align_t), "malloc must satisfy every standard type");

// The page of linear memory.
constexpr size_t grow_unit_bytes = 65536;
constexpr unsigned address_bits = 32;
// A leaf of 4 KiB stands for 4 MiB.
constexpr unsigned map_leaf_bits = 10;
// Linear memory has no half that pointers cannot span.
constexpr bool may_pass_half = true;
constexpr bool has_threads = false;

}  // namespace ashlar::os
