// Each part of the allocator broken on purpose, by one change of one file of src, and what the
// self-test then finds: exactly these checks, no more. `find` stands once in the file.
export const breaks = [
  {
    part: 'arena', what: 'a freed block does not join the free one before it',
    file: 'arena.cc', find: 'if (joins_previous) {', replace: 'if (false) {',
    fails: [
      'joins the free block before', 'joins both free blocks', 'pages are given back',
      'empty pages make room', 'a class gets pages', 'ranges of the page map', 'reserve',
      'random, small', 'random, mixed', 'a stranger grows memory', 'memory ends',
    ],
  },
  {
    part: 'arena', what: 'a freed block does not join the free one behind it',
    file: 'arena.cc',
    find: 'block::header(b) = 0;\n  if (!block::is_in_use(next)) {',
    replace: 'block::header(b) = 0;\n  if (false) {',
    fails: [
      'joins the free block before', 'joins the free block behind', 'joins both free blocks',
      'pages are given back', 'empty pages make room', 'a class gets pages',
      'ranges of the page map', 'reserve', 'random, small', 'random, mixed',
      'a stranger grows memory', 'memory ends', 'double free in the arena, joined',
    ],
  },
  {
    part: 'arena', what: "a stranger's memory is taken for ours",
    file: 'arena.cc', find: '&& memory.begin == newest_.raw_end;', replace: ';',
    fails: ['a stranger grows memory'],
  },
  {
    part: 'arena', what: 'growth takes the least that will do',
    file: 'arena.cc', find: 'max(least, step)', replace: 'least',
    fails: ['growth', 'set_growth'],
  },
  {
    part: 'arena', what: 'used memory is taken for fresh',
    file: 'arena.cc', find: 'max(b, max(used_before_, zero_from_))', replace: 'b',
    fails: ['calloc of used memory, large'],
  },
  {
    part: 'block', what: 'the seal is the same for every address',
    file: 'block.h',
    find: 'return wrapping_multiply(b,',
    replace: 'return wrapping_multiply(b | ~b,',
    fails: ["free of a block's image"],
  },
  {
    part: 'page', what: 'the tag of a free block is not looked at',
    file: 'page.h',
    find: 'is_carved(b) && (at<FreeBlock>(b).tag | 1) != tag_of(b)',
    replace: 'is_carved(b)',
    fails: [
      'double free in a page', 'double free in a page, another between',
      'realloc of a freed block in a page', 'realloc to 0 of a freed block',
      'usable size of a freed block in a page', 'free of what was never handed out',
    ],
  },
  {
    part: 'page', what: 'a block in the first list has no tag',
    file: 'page.cc', find: 'write_free(b, b + bytes, fresh_tag_of(b))',
    replace: 'write_free(b, b + bytes, 0)',
    // ashlar_check() finds such a list by itself, and so every check that asks it.
    fails: [
      'a class gets pages', 'ranges of the page map', 'random, small', 'random, mixed',
      'double free in a page', 'double free in a page, another between',
      'realloc of a freed block in a page', 'realloc to 0 of a freed block',
      'usable size of a freed block in a page', 'free inside a block in a page',
      'free of an odd address', 'realloc inside a block in a page',
      'free of what was never handed out', 'free of what was in no list yet',
    ],
  },
  {
    part: 'page', what: 'a block that was never handed out passes',
    file: 'page.h',
    find: 'multiplier) < limit;',
    replace: 'multiplier) < capacity * wrapping_multiply(multiplier, block_bytes());',
    fails: ['free of what was in no list yet'],
  },
  {
    part: 'page', what: 'an address inside a block passes',
    file: 'page.h',
    find: 'return is_carved(b) &&',
    replace: 'return b < start + carved * block_bytes() &&',
    fails: [
      'free inside a block in a page', 'free of an odd address', 'realloc inside a block in a page',
    ],
  },
  {
    part: 'page map', what: 'one leaf for all ranges',
    file: 'page_map.h',
    find: '(p >> (tile_shift + os::map_leaf_bits)) & (root_entries - 1)',
    replace: '(p >> (tile_shift + os::map_leaf_bits)) & 0',
    fails: ['ranges of the page map', 'statistics of blocks'],
  },
  {
    part: 'page map', what: 'a leaf goes while pages are in its range',
    file: 'page_map.cc', find: 'tile_count(leaf_of(p)) != 0', replace: 'false',
    fails: [
      'alignment', 'calloc of used memory, small', 'reuse', 'pages are given back',
      'empty pages make room', 'holes in full pages are used', 'a class gets pages',
      'ranges of the page map', 'statistics of blocks', 'random, small',
    ],
  },
  {
    part: 'page map', what: 'a page that lies in two ranges is known in one',
    file: 'heap.cc', find: 'page_map.has_leaf(start) ? last : start', replace: 'start',
    fails: ['ranges of the page map'],
  },
  {
    part: 'heap', what: 'realloc copies too little',
    file: 'heap.cc', find: 'min(size, usable));', replace: 'min(size, usable) - 1);',
    fails: ['realloc grows', 'random, small', 'random, mixed'],
  },
  {
    part: 'heap', what: 'calloc trusts dirty memory in pages',
    file: 'heap.cc', find: 'clear_bytes(b, size);', replace: 'clear_bytes(b, 0);',
    fails: ['calloc of used memory, small', 'random, small', 'random, mixed'],
  },
  {
    part: 'heap', what: 'calloc trusts dirty memory in the arena',
    file: 'heap.cc', find: 'min(size, arena.dirty_bytes(b))', replace: '0',
    fails: ['calloc of used memory, large', 'random, mixed'],
  },
  {
    part: 'heap', what: 'a full page never returns to its ring',
    file: 'heap.cc', find: 'set_due(page, 1);', replace: 'set_due(page, Page::never);',
    fails: [
      'pages are given back', 'empty pages make room', 'holes in full pages are used',
      'a class gets pages', 'ranges of the page map', 'random, small',
    ],
  },
  {
    part: 'heap', what: 'empty pages are kept for their class',
    file: 'heap.cc', find: 'page->used() != 0) continue;', replace: 'true) continue;',
    fails: ['empty pages make room'],
  },
  {
    part: 'heap', what: 'the last block never grows where it is',
    file: 'heap.cc', find: 'may_grow && grow_in_arena(b, need)', replace: 'false',
    fails: ['realloc at the end of memory'],
  },
  {
    part: 'heap', what: 'the alignment of a large block is forgotten',
    file: 'heap.cc', find: 'arena_block(size, max(alignment, granule_bytes))',
    replace: 'arena_block(size, granule_bytes)',
    fails: [
      'aligned_alloc', 'aligned_alloc gives back the rest', 'random, small', 'random, mixed',
    ],
  },
  {
    part: 'heap', what: 'frees in pages are not counted',
    file: 'heap.cc', find: 'stats.frees += page->freed();', replace: '',
    fails: ['statistics of blocks'],
  },
  {
    part: 'OS layer', what: 'the refusal of memory.grow is taken for memory',
    file: 'wasm_os/linear.cc', find: 'if (begin_page == refused)', replace: 'if (false)',
    fails: ['impossible sizes', 'memory ends'],
  },
  {
    part: 'OS layer', what: "another malloc's memory is taken",
    file: 'wasm_os/linear.cc', find: '&ashlar_is_malloc == nullptr || ', replace: '',
    fails: ['own memory only'],
  },
  {
    part: 'fault', what: 'another word for an interior pointer',
    file: 'fault.cc', find: '"interior pointer "', replace: '"inner pointer "',
    fails: [
      'free inside a block in a page', 'free of an odd address', 'free inside a block in the arena',
      'free inside 1 MiB', "free of a block's image", 'realloc inside a block in a page',
    ],
  },
  {
    part: 'fault', what: 'an address without its first digit of eight',
    file: 'fault.cc',
    find: 'unsigned shift = word_bits;',
    replace: 'unsigned shift = word_bits - 4;',
    fails: ['free of the last address'],
  },
  {
    part: 'fault', what: 'another number for a foreign pointer', profile: 'small',
    file: 'fault.h', find: 'foreign_pointer = 3,', replace: 'foreign_pointer = 8,',
    fails: [
      'free of a static object', 'realloc of a static object', 'free of a stack object',
      'free of address 16', 'free of the last address', "free in a stranger's memory",
    ],
  },
  {
    part: 'C API', what: 'a product that wraps around',
    file: 'api.h', find: 'count, size, &bytes)) {', replace: 'count, size, &bytes) && false) {',
    fails: ['calloc overflow'],
  },
  {
    part: 'C API', what: 'any alignment passes',
    file: 'api.cc', find: 'if (!is_power_of_two(alignment)) {', replace: 'if (alignment == 0) {',
    fails: ['bad alignment'],
  },
  {
    part: 'C API', what: 'validation sees nothing of the arena',
    file: 'api.cc', find: 'Address fault = arena.find_fault();', replace: 'Address fault = 0;',
    fails: ['validation sees damage'],
  },
];
