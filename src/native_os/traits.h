// What the core may assume about Linux on x86-64 and i386.
#pragma once

#include "base.h"

namespace ashlar::os {

#if !defined(__x86_64__) && !defined(__i386__)
static_assert(false, "ashlar: natively only x86-64 and i386 are supported yet");
#endif

constexpr size_t alignment = 16;
static_assert(alignment >= alignof(max_align_t), "malloc must satisfy every standard type");
constexpr size_t grow_unit_bytes = size_t(256) * 1024;
// The kernel gives out higher addresses only to who asks for them.
constexpr unsigned address_bits = sizeof(void*) == 8 ? 47 : 32;
// 64-bit: a root of 64 MiB of address space, a leaf of 32 KiB for 16 MiB.
constexpr unsigned map_leaf_bits = sizeof(void*) == 8 ? 12 : 10;
constexpr bool may_pass_half = false;
constexpr bool has_threads = true;

}  // namespace ashlar::os
