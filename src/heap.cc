#include "heap.h"

#include "ashlar.h"

namespace ashlar {

using block::Owner;

constinit Heap heap{};
constinit Page Heap::empty_page{};

keep_in_binary constexpr char fingerprint[] =
    "ashlar " ASHLAR_TEXT(ASHLAR_VERSION_MAJOR) "." ASHLAR_TEXT(
        ASHLAR_VERSION_MINOR) "." ASHLAR_TEXT(ASHLAR_VERSION_PATCH) " " ASHLAR_TEXT(ASHLAR_PROFILE);

// Small blocks, when the fast path found none.

void* Heap::allocate_slow(size_t size) {
  Address b = 0;
  if constexpr (profile.has_pages) {
    if (size <= small_max_bytes) b = small_block(class_of(size));
  }
  if (b == 0) b = arena_block(size, granule_bytes);
  return pointer_to(b);
}

// A block from a page, or 0: the class is cold or there is no memory for a page.
Address Heap::small_block(SizeClass c) {
  return classes_[c.index].pages == 0 && stays_cold(c) ? 0 : page_block(c);
}

Address Heap::page_block(SizeClass c) {
  const Class& k = classes_[c.index];
  for (;;) {
    Page* page = k.ring;
    if (page == nullptr) {
      page = new_page(c);
      if (page == nullptr) return 0;
    }
    if (page->free == 0 && !page->carve_more()) {
      leave_full(*page);
      continue;
    }
    const Address b = page->free;
    page->pop(b);
    return b;
  }
}

bool Heap::is_worth_page(SizeClass c) const {
  return cold_bytes_[c.index] + cold_bytes_[c.index + 1] >= class_table.tiles[c.index] * tile_bytes;
}

bool Heap::stays_cold(SizeClass c) {
  if (is_worth_page(c)) return false;
  Class& k = classes_[c.index];
  if (k.trips < trips_for_page) {
    ++k.trips;
    return true;
  }
  const size_t gifts = gift_bytes_ + class_table.tiles[c.index] * tile_bytes;
  return gifts > arena.committed_bytes() / gift_share + gift_floor_bytes;
}

// Rings.

void Heap::direct_to_first(SizeClass c) {
  const Page* page = classes_[c.index].ring;
  const Word offset =
      page == nullptr ? 0 : wrapping_subtract(address_of(page), address_of(&empty_page));
  size_t granules = c.index == 0 ? 0 : block_granules({c.index - 1}) + 1;
  for (; granules <= block_granules(c); ++granules) direct_[granules] = offset;
}

// Behind the others: they shall fill up, and this one may empty.
void Heap::enter_ring(Page& page) {
  Page*& ring = classes_[page.class_index].ring;
  Page* first = ring;
  page.join(ring);
  if (first == nullptr) {
    set_due(page, Page::never);
    return direct_to_first(page.size_class());
  }
  set_due(page, page.used());
  if (first->next != &page) return;
  // The other one is no longer alone, and must tell when it is empty; or is already.
  if (first->used() != 0) return set_due(*first, first->used());
  set_due(page, Page::never);
  leave_ring(*first);
  give_page_back(*first);
}

void Heap::leave_ring(Page& page) {
  Page*& ring = classes_[page.class_index].ring;
  const bool was_first = ring == &page;
  page.leave(ring);
  if (was_first) direct_to_first(page.size_class());
}

void Heap::leave_full(Page& page) {
  leave_ring(page);
  page.full = true;
  page.join(classes_[page.class_index].full_ring);
  set_due(page, 1);
}

void Heap::return_from_full(Page& page) {
  page.leave(classes_[page.class_index].full_ring);
  page.full = false;
  enter_ring(page);
}

// Starts a new count: the frees so far move to the heap's, the live blocks stay.
void Heap::set_due(Page& page, uint32_t due) {
  const uint32_t freed = page.freed();
  frees_ += freed;
  page.allocated = wrapping_subtract32(page.allocated, freed);
  page.due = page.goal = due;
}

void Heap::page_due(Page& page) {
  if (page.full) return return_from_full(page);
  const uint32_t used = page.used();
  if (page.next == &page) return set_due(page, Page::never);
  if (used != 0) return set_due(page, used);
  leave_ring(page);
  give_page_back(page);
}

// Memory.

// Called until there is room or it says that there cannot be. Memory grows only when no empty page
// is held that could serve instead.
bool Heap::make_room(size_t need, size_t alignment, unsigned& attempt) {
  if (release_empty_pages()) return true;
  return attempt <= Arena::last_attempt && arena.grow(need, alignment, attempt++);
}

Address Heap::take_with_room(size_t need, size_t alignment, Owner owner) {
  unsigned attempt = 0;
  while (make_room(need, alignment, attempt)) {
    if (const Address b = arena.allocate(need, alignment, owner); b != 0) return b;
  }
  return 0;
}

Address Heap::take_from_arena(size_t need, size_t alignment, Owner owner) {
  const Address b = arena.allocate(need, alignment, owner);
  return b != 0 ? b : take_with_room(need, alignment, owner);
}

// Pages.

// The more pages a class has, the longer the new ones.
size_t Heap::page_tiles(SizeClass c) const {
  const size_t shortest = class_table.tiles[c.index];
  const uint32_t pages = classes_[c.index].pages;
  const size_t times = pages < 4 ? 1 : pages < 16 ? 2 : 4;
  return shortest * min(times, max_page_tiles / shortest);
}

// A page may lie in two ranges of the map. Taking a leaf may release the last page of the other
// range, and with it that range's leaf: so both are asked again.
bool Heap::provide_leaves(Address start, size_t tiles) {
  const Address last = start + tiles * tile_bytes - 1;
  for (;;) {
    const Address lacking = page_map.has_leaf(start) ? last : start;
    if (page_map.has_leaf(lacking)) return true;
    const size_t need = block::bytes_for(PageMap::leaf_bytes);
    const Address leaf = take_from_arena(need, granule_bytes, Owner::allocator);
    if (leaf == 0) return false;
    page_map.give_leaf(lacking, leaf);
  }
}

Page* Heap::new_page(SizeClass c) {
  const bool gift = classes_[c.index].pages == 0 && !is_worth_page(c);
  const size_t need = block::bytes_for(PageMap::page_mark + sizeof(Page));
  const Address descriptor = take_from_arena(need, granule_bytes, Owner::allocator);
  if (descriptor == 0) return nullptr;
  size_t tiles = page_tiles(c);
  const Address start = take_from_arena(tiles * tile_bytes, tile_bytes, Owner::allocator);
  if (start == 0 || !provide_leaves(start, tiles)) {
    if (start != 0) free_tiles(start, tiles);
    arena.free(descriptor);
    return nullptr;
  }
  Page& page = at<Page>(descriptor + PageMap::page_mark);
  page.set_up(start, tiles, c);
  page.gift = gift;
  page_map.set_page(start, tiles, &page);
  if (gift) gift_bytes_ += tiles * tile_bytes;
  ++classes_[c.index].pages;
  enter_ring(page);
  return &page;
}

// `page` is empty and in no ring.
void Heap::give_page_back(Page& page) {
  set_due(page, 0);
  const Address start = page.start;
  const size_t tiles = page.tiles;
  Class& k = classes_[page.class_index];
  if (--k.pages == 0) k.trips = 0;
  if (page.gift) gift_bytes_ -= tiles * tile_bytes;
  page_map.set_page(start, tiles, nullptr);
  arena.free(address_of(&page) - PageMap::page_mark);
  free_tiles(start, tiles);
}

// And the leaves that hold no page any more.
void Heap::free_tiles(Address start, size_t tiles) {
  arena.free(start);
  const Address ends[] = {start, start + tiles * tile_bytes - 1};
  for (const Address end : ends) {
    if (const Address leaf = page_map.take_unused_leaf(end); leaf != 0) arena.free(leaf);
  }
}

// Only a page that is alone in its ring can be empty.
bool Heap::release_empty_pages() {
  if constexpr (!profile.has_pages) return false;
  bool released = false;
  for (const Class& k : classes_) {
    Page* page = k.ring;
    if (page == nullptr || page->next != page || page->used() != 0) continue;
    leave_ring(*page);
    give_page_back(*page);
    released = true;
  }
  return released;
}

// Blocks of the arena.

Address Heap::arena_block(size_t size, size_t alignment) {
  const bool sane = size <= max_request_bytes && alignment <= max_request_bytes - size;
  const Address b = sane ? take_from_arena(block::bytes_for(size), alignment, Owner::program) : 0;
  if (b == 0) {
    os::set_out_of_memory();
  } else {
    charge(block::size_of(b));
  }
  return b;
}

// A block that a page could hold is charged until it is gone.
void Heap::charge(size_t size) {
  if (uint32_t* const account = account_for(size)) *account += uint32_t(size);
}

void Heap::discharge(size_t size) {
  if (uint32_t* const account = account_for(size)) *account -= uint32_t(size);
}

uint32_t* Heap::account_for(size_t size) {
  if (!profile.has_pages || size > small_max_bytes + granule_bytes) return nullptr;
  return &cold_bytes_[class_of_granules(size / granule_bytes).index];
}

// Giving back what the fast path does not take.

void Heap::release_slow(Address b) {
  if (b == 0) return;
  if constexpr (profile.catches_misuse) demand_live_in_arena(b);
  discharge(block::size_of(b));
  ++frees_;
  arena.free(b);
}

// The tests of the fast path failed: the exact answer.
void Heap::release_suspect(Page& page, Address b) {
  stop_unless_live(page, b);
  release_in(page, b);
}

void Heap::stop_unless_live(const Page& page, Address b) {
  if (!page.is_carved(b)) {
    const size_t offset = b - page.start;
    const size_t bytes = page.block_bytes();
    const bool is_block = offset % bytes == 0 && offset / bytes < page.capacity;
    stop_on_fault(is_block ? Fault::never_allocated : Fault::interior_pointer, b);
  }
  if (page.is_free(b)) {
    const bool is_fresh = at<FreeBlock>(b).tag == Page::fresh_tag_of(b);
    stop_on_fault(is_fresh ? Fault::never_allocated : Fault::double_free, b);
  }
}

void Heap::demand_live_in_arena(Address b) {
  if (!arena.is_live(b)) stop_on_fault(arena.fault_at(b), b);
}

// The page of a live block, or null when it is the arena's. Stops on misuse.
Page* Heap::demand_page(Address b) {
  if constexpr (profile.has_pages) {
    const Word word = page_map.word_of(b);
    if (PageMap::is_page(word)) {
      Page& page = PageMap::page_of(word);
      if (profile.catches_misuse && !page.looks_live(b)) stop_unless_live(page, b);
      return &page;
    }
  }
  if constexpr (profile.catches_misuse) demand_live_in_arena(b);
  return nullptr;
}

size_t Heap::usable_bytes(const void* block) {
  if (block == nullptr) return 0;
  const Address b = address_of(block);
  const Page* page = demand_page(b);
  return page == nullptr ? block::usable_bytes(b) : page->block_bytes();
}

// The other forms.

void* Heap::allocate_zeroed(size_t size) {
  void* block = allocate(size);
  if (block == nullptr) return nullptr;
  const Address b = address_of(block);
  if (profile.has_pages && size <= small_max_bytes) {
    clear_bytes(b, size);
    return block;
  }
  clear_bytes(b, min(size, arena.dirty_bytes(b)));
  return block;
}

void* Heap::allocate_aligned(size_t alignment, size_t size) {
  if constexpr (profile.has_pages) {
    if (alignment <= granule_bytes) return allocate_slow(size);
    // Blocks of a page stand at multiples of their size from an aligned start.
    if (alignment <= small_max_bytes && size <= small_max_bytes) {
      const size_t rounded = align_up(max(size, 1), alignment);
      const SizeClass c = class_of(min(rounded, small_max_bytes));
      // Not in one that realloc to the same size would take for half empty.
      const bool fits =
          rounded <= small_max_bytes && block_bytes_of(c) < 2 * max(size, granule_bytes);
      if (fits && block_bytes_of(c) % alignment == 0) {
        if (const Address b = small_block(c); b != 0) return pointer_to(b);
      }
    }
  }
  return pointer_to(arena_block(size, max(alignment, granule_bytes)));
}

bool Heap::resize_in_arena(Address b, size_t size, bool may_grow) {
  const size_t need = block::bytes_for(size);
  const size_t before = block::size_of(b);
  if (!arena.resize(b, need) && !(may_grow && grow_in_arena(b, need))) return false;
  discharge(before);
  charge(block::size_of(b));
  return true;
}

bool Heap::grow_in_arena(Address b, size_t need) {
  if (!arena.is_last(b)) return false;
  return (release_empty_pages() && arena.resize(b, need)) || arena.grow_last(b, need);
}

// And so that an eighth more is a size, too.
bool Heap::grows_by_little(size_t usable, size_t size) {
  return profile.has_pages && usable > small_max_bytes && usable < max_request_bytes / 2 &&
         wrapping_subtract(size, usable + 1) < usable / 8;
}

void* Heap::reallocate(void* block, size_t size) {
  const Address b = address_of(block);
  size_t usable = 0;
  if (block != nullptr) {
    const Page* const page = demand_page(b);
    if (size > max_request_bytes) {
      os::set_out_of_memory();
      return nullptr;
    }
    usable = page == nullptr ? block::usable_bytes(b) : page->block_bytes();
    // In a page a block that is half empty or more moves to a smaller class.
    const bool fits = size <= usable && (size > usable / 2 || usable == granule_bytes);
    if (page == nullptr ? resize_in_arena(b, size, true) : fits) return block;
  }
  // What grows by little will do so again: with an eighth more it can where it is.
  const size_t slack = grows_by_little(usable, size) ? size / 8 : 0;
  void* moved = allocate(size + slack);
  if (block == nullptr) return moved;
  if (moved == nullptr && slack != 0) moved = allocate_slow(size);
  if (moved == nullptr) return size <= usable ? block : nullptr;
  copy_bytes(address_of(moved), b, min(size, usable));
  release(block);
  return moved;
}

bool Heap::resize_in_place(void* block, size_t size) {
  const Address b = address_of(block);
  const Page* page = demand_page(b);
  if (page != nullptr) return size <= page->block_bytes();
  return size <= max_request_bytes && resize_in_arena(b, size, false);
}

size_t Heap::good_bytes(size_t size) {
  if (size > max_request_bytes) return size;
  const size_t in_arena = block::usable_of_size(block::bytes_for(size));
  if (!profile.has_pages || size > small_max_bytes) return in_arena;
  return min(in_arena, block_bytes_of(class_of(size)));
}

// Facts.

bool Heap::reserve(size_t bytes) {
  // Room for a page's alignment, a leaf and a descriptor.
  constexpr size_t around = 2 * tile_bytes + PageMap::leaf_bytes;
  if (bytes > max_request_bytes - around) return false;
  const size_t need = block::bytes_for(bytes + around);
  unsigned attempt = 0;
  while (arena.last_free_bytes() < need) {
    if (!make_room(need, granule_bytes, attempt)) return false;
  }
  return true;
}

size_t Heap::static_bytes() {
  // On 64 bits the root of the page map is address space, of which little is ever touched.
  return sizeof(Heap) + sizeof(Arena) + min(sizeof(PageMap), 2 * tile_bytes);
}

size_t Heap::used_peak_bytes() const {
  return static_bytes() + arena.committed_bytes() - arena.never_used_bytes();
}

void Heap::add_counts(const Page* ring, ashlar_stats_t& stats) {
  const Page* page = ring;
  if (page == nullptr) return;
  do {
    stats.frees += page->freed();
    stats.live_blocks += page->used();
    stats.live_bytes += page->used() * page->block_bytes();
    page = page->next;
  } while (page != ring);
}

void Heap::fill_in(ashlar_stats_t& stats) const {
  stats.frees = frees_;
  const Arena::Census census = arena.count();
  stats.live_blocks = census.live_blocks;
  stats.live_bytes = census.live_bytes;
  stats.free_bytes = census.free_bytes;
  stats.free_blocks = census.free_blocks;
  stats.largest_free_bytes = census.largest_free_bytes;
  for (const Class& k : classes_) {
    add_counts(k.ring, stats);
    add_counts(k.full_ring, stats);
  }
  stats.allocations = stats.frees + stats.live_blocks;
  stats.committed_bytes = static_bytes() + arena.committed_bytes();
  stats.used_peak_bytes = used_peak_bytes();
  stats.grow_count = arena.grow_count();
}

}  // namespace ashlar
