// Seam: memory as words. An allocator makes typed memory out of addresses; the language checks
// nothing of that, so it happens here and nowhere else (tests/node/layers.test.mjs holds us to it).
//
// Why it holds: every address that reaches at() lies in memory that the OS layer gave to the
// arena, or in a static object of ours, at the alignment of T; and a block that a program holds is
// never read or written as anything but the bytes that the program asked us to copy or clear. Word
// may alias whatever a program left in a block that it freed.
#pragma once

#include "base.h"

namespace ashlar {

using Word = size_t __attribute__((may_alias));

template <class T>
fast_path T& at(Address address) {
  return *reinterpret_cast<T*>(address);
}

// The object that stands `bytes` behind another one, in the wrapping arithmetic of addresses. Done
// on pointers, so that the offsets of its members fold into loads and stores.
template <class T>
fast_path T& moved(T& object, size_t bytes) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(&object) + bytes);
}

fast_path Word& word_at(Address address) { return at<Word>(address); }

template <class T>
fast_path Address address_of(T* object) {
  return reinterpret_cast<Address>(object);
}

fast_path void* pointer_to(Address address) { return reinterpret_cast<void*>(address); }

// Not memcpy and memset by name: the core is freestanding, and the compiler makes of these what
// the target has (memory.copy and memory.fill on wasm).
fast_path void copy_bytes(Address to, Address from, size_t bytes) {
  __builtin_memcpy(pointer_to(to), pointer_to(from), bytes);
}
fast_path void clear_bytes(Address begin, size_t bytes) {
  __builtin_memset(pointer_to(begin), 0, bytes);
}

}  // namespace ashlar
