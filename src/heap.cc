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
    if (size <= small_max_bytes) b = page_block(class_of(size));
  }
  if (b == 0) b = arena_block(size, granule_bytes);
  return pointer_to(b);
}

// A block from a page, or 0: the class is cold or there is no memory for a page.
Address Heap::page_block(SizeClass c) {
  Class& k = classes_[c.index];
  for (;;) {
    Page* page = k.ring;
    if (page == nullptr) {
      bool gift = false;
      if (k.pages == 0 && stays_cold(c, gift)) return 0;
      page = new_page(c, gift);
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

bool Heap::stays_cold(SizeClass c, bool& gift) {
  // Charges are by the size of the arena block, which may serve several classes.
  Class& k = classes_[c.index];
  const size_t page_bytes = class_table.tiles[c.index] * tile_bytes;
  const size_t usable = block::bytes_for(block_bytes_of(c)) - word_bytes;
  const Class& charged = classes_[class_of(min(usable, small_max_bytes)).index];
  if (charged.cold_bytes + block_bytes_of(c) >= page_bytes) return false;
  if (k.trips < trips_for_page) {
    ++k.trips;
    return true;
  }
  gift = gift_bytes_ + page_bytes <= arena.committed_bytes() / gift_share;
  return !gift;
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

// Memory grows only when no empty page is held that could serve instead.
template <class Allocate>
Address Heap::allocate_or_grow(size_t need, size_t alignment, Allocate allocate) {
  unsigned attempt = 0;
  for (;;) {
    if (const Address b = allocate(); b != 0) return b;
    if (release_empty_pages()) continue;
    if (attempt > Arena::last_attempt || !arena.grow(need, alignment, attempt)) return 0;
    ++attempt;
  }
}

// Pages.

// The more pages a class has, the longer the new ones.
size_t Heap::page_tiles(SizeClass c) const {
  const size_t shortest = class_table.tiles[c.index];
  const uint32_t pages = classes_[c.index].pages;
  const size_t times = pages < 4 ? 1 : pages < 16 ? 2 : 4;
  return shortest * min(times, max_page_tiles / shortest);
}

Address Heap::take_tiles(size_t tiles) {
  return allocate_or_grow(tiles * tile_bytes, tile_bytes,
                          [=] { return arena.allocate_tiles(tiles); });
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

Page* Heap::new_page(SizeClass c, bool gift) {
  const Address descriptor =
      take_from_arena(block::bytes_for(sizeof(Page)), granule_bytes, Owner::allocator);
  if (descriptor == 0) return nullptr;
  size_t tiles = page_tiles(c);
  Address start = take_tiles(tiles);
  if (start == 0 || !provide_leaves(start, tiles)) {
    if (start != 0) free_tiles(start, tiles);
    arena.free(descriptor);
    return nullptr;
  }
  Page& page = at<Page>(descriptor);
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
  arena.free(address_of(&page));
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

Address Heap::take_from_arena(size_t need, size_t alignment, Owner owner) {
  return allocate_or_grow(need, alignment, [=] { return arena.allocate(need, alignment, owner); });
}

Address Heap::arena_block(size_t size, size_t alignment) {
  const bool sane = size <= max_request_bytes && alignment <= max_request_bytes - size;
  const Address b = sane ? take_from_arena(block::bytes_for(size), alignment, Owner::program) : 0;
  if (b == 0) {
    os::set_out_of_memory();
  } else {
    charge(b);
  }
  return b;
}

// A block that a page could hold is charged to its class until it is gone.
void Heap::charge(Address b) {
  const size_t usable = block::usable_bytes(b);
  uint32_t* const cold_bytes = cold_bytes_for(usable);
  if (cold_bytes != nullptr) *cold_bytes += uint32_t(usable);
}

void Heap::discharge(Address b) {
  const size_t usable = block::usable_bytes(b);
  uint32_t* const cold_bytes = cold_bytes_for(usable);
  if (cold_bytes != nullptr) *cold_bytes -= uint32_t(usable);
}

// Where arena blocks of this size are charged. One account serves the classes whose blocks the
// arena makes equally large.
uint32_t* Heap::cold_bytes_for(size_t usable) {
  if (!profile.has_pages || usable > small_max_bytes + granule_bytes) return nullptr;
  return &classes_[class_of(min(usable, small_max_bytes)).index].cold_bytes;
}

void Heap::free_in_arena(Address b) {
  discharge(b);
  ++frees_;
  arena.free(b);
}

// Giving back what the fast path does not take.

void Heap::release_slow(Address b) {
  if (b == 0) return;
  if constexpr (profile.catches_misuse) demand_live_in_arena(b);
  free_in_arena(b);
}

// The tests of the fast path failed: the exact answer.
void Heap::release_suspect(Page& page, Address b) {
  stop_unless_live(page, b);
  release_in(page, b);
}

void Heap::stop_unless_live(const Page& page, Address b) {
  const size_t index = page.index_of(b);
  if (index >= page.carved) {
    stop_on_fault(index < page.capacity ? Fault::never_allocated : Fault::interior_pointer, b);
  }
  if (page.is_free(b)) stop_on_fault(Fault::double_free, b);
}

void Heap::demand_live_in_arena(Address b) {
  const Fault fault = arena.fault_at(b);
  if (fault != Fault::none) stop_on_fault(fault, b);
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
  // Fresh memory is zero, but for its size in the last word.
  clear_bytes(b, min(size, arena.dirty_bytes(b)));
  word_at(b + block::usable_bytes(b) - word_bytes) = 0;
  return block;
}

void* Heap::allocate_aligned(size_t alignment, size_t size) {
  if constexpr (profile.has_pages) {
    if (alignment <= granule_bytes) return allocate(size);
    // Blocks of a page stand at multiples of their size from an aligned start.
    if (alignment <= small_max_bytes && size <= small_max_bytes) {
      const size_t rounded = align_up(max(size, 1), alignment);
      const SizeClass c = class_of(min(rounded, small_max_bytes));
      // Not in one that realloc to the same size would take for half empty.
      const bool fits =
          rounded <= small_max_bytes && block_bytes_of(c) < 2 * max(size, granule_bytes);
      if (fits && block_bytes_of(c) % alignment == 0) {
        if (const Address b = page_block(c); b != 0) return pointer_to(b);
      }
    }
  }
  return pointer_to(arena_block(size, max(alignment, granule_bytes)));
}

bool Heap::resize_in_arena(Address b, size_t size, bool may_grow) {
  const size_t need = block::bytes_for(size);
  discharge(b);
  bool done = arena.resize(b, need);
  if (!done && may_grow && arena.is_last(b)) {
    done = (release_empty_pages() && arena.resize(b, need)) || arena.grow_last(b, need);
  }
  charge(b);
  return done;
}

void* Heap::reallocate(void* block, size_t size) {
  if (block == nullptr) return allocate(size);
  const Address b = address_of(block);
  const Page* page = demand_page(b);
  if (size > max_request_bytes) {
    os::set_out_of_memory();
    return nullptr;
  }
  const size_t usable = page == nullptr ? block::usable_bytes(b) : page->block_bytes();
  // In a page a block that is half empty or more moves to a smaller class.
  const bool fits = size <= usable && (size > usable / 2 || usable == granule_bytes);
  if (page == nullptr ? resize_in_arena(b, size, true) : fits) return block;
  void* moved = allocate(size);
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
  return allocate_or_grow(need, granule_bytes, [=] { return arena.last_free_bytes() >= need; }) !=
         0;
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
