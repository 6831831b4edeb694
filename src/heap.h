// The heap: pages by size class, and the arena behind them. What malloc and free do.
//
// A class is cold until it deserves a page: its blocks come from the arena, so that a tiny program
// costs about what its blocks cost. It turns hot when those blocks' bytes are worth a page, or
// after many trips to the arena, while pages given for that reason are a small part of the heap.
//
// Invariants: `direct` has, for every small size, the first page of the ring of its class, or the
// empty page; a ring holds the class's pages that are not full; a page of a ring may be empty only
// when it is alone there, and is held then until memory would grow.
#pragma once

#include "arena.h"
#include "page.h"
#include "page_map.h"

struct ashlar_stats_t;

namespace ashlar {

class Heap {
 public:
  // The C functions, but for the checks of arguments that their comments leave out. The
  // results are aligned to a granule; null means out of memory, with errno set. Misuse stops the
  // program.
  fast_path void* allocate(size_t size) {
    if constexpr (profile.has_pages) {
      if (size <= small_max_bytes) [[likely]] {
        Page& page = page_for(granules_for(size));
        const Address b = page.free;
        if (b != 0) [[likely]] {
          page.pop(b);
          return pointer_to(b);
        }
      }
    }
    return allocate_slow(size);
  }

  fast_path void release(void* block) {
    const Address b = address_of(static_cast<char*>(block));
    if constexpr (profile.has_pages) {
      const Word word = page_map.word_of(b);
      if (PageMap::is_page(word)) [[likely]] {
        Page& page = PageMap::page_of(word);
        if constexpr (profile.catches_misuse) {
          if (!page.looks_live(b)) [[unlikely]]
            return release_suspect(page, b);
        }
        return release_in(page, b);
      }
    }
    release_slow(b);
  }

  void* allocate_zeroed(size_t size);
  void* allocate_aligned(size_t alignment, size_t size);  // a power of two
  void* reallocate(void* block, size_t size);
  static size_t usable_bytes(const void* block);
  // Makes a block `size` bytes long where it is, in the memory that is there. false: nothing was
  // changed.
  bool resize_in_place(void* block, size_t size);

  // What a request of `size` can count on, from a page or from the arena.
  static size_t good_bytes(size_t size);

  bool reserve(size_t bytes);
  size_t used_peak_bytes() const;
  void fill_in(ashlar_stats_t& stats) const;

  // Validates pages and rings, and that the page map agrees. Address of a fault, or 0.
  Address find_fault() const;

 private:
  static size_t static_bytes();
  static Address find_fault_in_ring(const Page* ring, SizeClass c, bool full, uint32_t& seen);
  Address find_fault_in(SizeClass c) const;

  struct Class {
    Page* ring;  // pages with room; malloc takes from the first
    Page* full_ring;
    uint32_t pages;  // in both
    uint32_t trips;  // to the arena, since the class had no page
  };

  static constexpr uint32_t trips_for_page = 128;
  static constexpr size_t gift_share = 16;
  static constexpr size_t gift_floor_bytes = 16384;

  // Zero means the empty page, so that a new heap is all zero bytes.
  fast_path Page& page_for(size_t granules) { return moved(empty_page, direct_[granules]); }

  fast_path void release_in(Page& page, Address b) {
    page.push(b);
    if (--page.due == 0) [[unlikely]]
      page_due(page);
  }

  slow_path void* allocate_slow(size_t size);
  slow_path void release_slow(Address b);
  slow_path void release_suspect(Page& page, Address b);
  slow_path void page_due(Page& page);

  static void stop_unless_live(const Page& page, Address b);
  static void demand_live_in_arena(Address b);
  static Page* demand_page(Address b);

  bool make_room(size_t need, size_t alignment, unsigned& attempt);
  Address take_from_arena(size_t need, size_t alignment, block::Owner owner);
  slow_path Address take_with_room(size_t need, size_t alignment, block::Owner owner);
  Address arena_block(size_t size, size_t alignment);
  Address small_block(SizeClass c);
  slow_path Address page_block(SizeClass c);
  bool resize_in_arena(Address b, size_t size, bool may_grow);
  bool grow_in_arena(Address b, size_t need);
  static bool grows_by_little(size_t usable, size_t size);
  uint32_t* account_for(size_t size);
  void charge(size_t size);
  void discharge(size_t size);

  bool is_worth_page(SizeClass c) const;
  bool stays_cold(SizeClass c);
  Page* new_page(SizeClass c);
  bool provide_leaves(Address start, size_t tiles);
  static void free_tiles(Address start, size_t tiles);
  size_t page_tiles(SizeClass c) const;
  void enter_ring(Page& page);
  void leave_ring(Page& page);
  void leave_full(Page& page);
  void return_from_full(Page& page);
  void direct_to_first(SizeClass c);
  slow_path void set_due(Page& page, uint32_t due);
  void give_page_back(Page& page);
  bool release_empty_pages();
  static void add_counts(const Page* ring, ashlar_stats_t& stats);

  static constinit Page empty_page;

  Word direct_[profile.has_pages ? small_max_granules + 1 : 1];
  Class classes_[profile.has_pages ? class_count : 1];
  // Live bytes of the arena's blocks that a page could hold, headers included, by the class of that
  // size: what was asked for is of this class or of the one before.
  uint32_t cold_bytes_[profile.has_pages ? class_count + 1 : 1];
  size_t gift_bytes_;
  uint64_t frees_;  // but those that the pages still count
};

extern constinit Heap heap;

// "ashlar VERSION PROFILE": stands in every binary that allocates with us, so that it can be seen
// there after any optimiser.
extern const char fingerprint[];

}  // namespace ashlar
