/* Floors: the least that any allocator of a kind must do, so that a reader sees the distance to
 * what is possible. None gives memory back, joins blocks, or checks anything. FLOOR chooses:
 *
 *   bump     malloc moves a pointer, free does nothing
 *   list     one free list: malloc takes its first block if that is large enough, else bumps
 *   classes  a free list for each size class; a word before the block says which
 *   pages    the same without that word: pages of 64 KiB hold one class each, and free looks the
 *            page up
 */
#include <stddef.h>
#include <stdint.h>

#define bump 1
#define list 2
#define classes 3
#define pages 4

enum { granule = 16, page_bits = 16, page_bytes = 1 << page_bits };
/* Of a block, and of all memory: whoever times a floor must have as much. */
static const size_t largest = (size_t)1 << 30;

static uintptr_t top, limit;

static size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) & ~(unit - 1); }

/* Cold: once per 4 MiB. */
static __attribute__((noinline)) int extend(uintptr_t end) {
  size_t const step = round_up(end - limit, (size_t)64 * page_bytes) >> page_bits;
  if (__builtin_wasm_memory_grow(0, step) == (size_t)-1) return 0;
  limit = (uintptr_t)__builtin_wasm_memory_size(0) << page_bits;
  return 1;
}

/* `bytes` that begin at a multiple of `alignment`, after `header` bytes; 0 when there are none. */
static uintptr_t cut(size_t header, size_t alignment, size_t bytes) {
  uintptr_t block, end;
  if (bytes > largest) return 0;
  if (top == 0) top = limit = (uintptr_t)__builtin_wasm_memory_size(0) << page_bits;
  block = round_up(top + header, alignment);
  end = round_up(block + bytes, granule);
  if (end < block || end > largest || (end > limit && !extend(end))) return 0;
  top = end;
  return block;
}

static void copy(void* to, const void* from, size_t bytes) { __builtin_memcpy(to, from, bytes); }

static uintptr_t next_of(uintptr_t block) { return *(uintptr_t*)block; }
static void set_next(uintptr_t block, uintptr_t next) { *(uintptr_t*)block = next; }

#if FLOOR == bump

static void* allocate(size_t alignment, size_t size) { return (void*)cut(0, alignment, size); }
static void release(uintptr_t block) { (void)block; }
/* Not known; what lies behind a block is memory too, so that many bytes can be copied. */
static size_t capacity(uintptr_t block) { return top - block; }
static int can_stay(uintptr_t block, size_t size) {
  (void)block;
  (void)size;
  return 0;
}

#elif FLOOR == list

static uintptr_t head;

static size_t capacity(uintptr_t block) { return ((size_t*)block)[-1]; }
static int can_stay(uintptr_t block, size_t size) { return size <= capacity(block); }

static void* allocate(size_t alignment, size_t size) {
  uintptr_t block = head;
  if (block != 0 && capacity(block) >= size && alignment <= granule) {
    head = next_of(block);
    return (void*)block;
  }
  size = round_up(size + (size == 0), granule);
  block = cut(granule, alignment, size);
  if (block != 0) ((size_t*)block)[-1] = size;
  return (void*)block;
}

static void release(uintptr_t block) {
  set_next(block, head);
  head = block;
}

#else

/* A class per granule up to 1 KiB, then one per power of two. */
enum { fine_classes = 64, class_count = fine_classes + 32 };

static uintptr_t heads[class_count];

static unsigned class_of(size_t size) {
  if (size <= fine_classes * granule) return size == 0 ? 0 : (unsigned)((size - 1) / granule);
  return fine_classes + (unsigned)(22 - __builtin_clz((unsigned)size - 1));
}

static size_t class_bytes(unsigned c) {
  return c < fine_classes ? (c + 1) * granule : (size_t)1 << (c - fine_classes + 10);
}

#if FLOOR == classes

static unsigned class_at(uintptr_t block) { return ((unsigned*)block)[-1]; }

static uintptr_t fresh_block(unsigned c, size_t alignment) {
  uintptr_t const block = cut(granule, alignment, class_bytes(c));
  if (block != 0) ((unsigned*)block)[-1] = c;
  return block;
}

/* A free block of a class may lie anywhere, so aligned ones are new ones. */
static unsigned class_for(size_t alignment, size_t size, int* is_new) {
  *is_new = alignment > granule;
  return class_of(size);
}

#else

static unsigned char page_class[1 << 16];
static uintptr_t rest[class_count], rest_end[class_count];

static unsigned class_at(uintptr_t block) { return page_class[block >> page_bits]; }

/* Each page is cut from its begin, so that a block of a power of two is aligned to itself. */
static uintptr_t fresh_block(unsigned c, size_t alignment) {
  size_t const bytes = class_bytes(c);
  uintptr_t block = rest[c];
  (void)alignment;
  if (block + bytes > rest_end[c]) {
    size_t const run = round_up(bytes, page_bytes);
    block = cut(0, page_bytes, run);
    if (block == 0) return 0;
    page_class[block >> page_bits] = (unsigned char)c;
    rest_end[c] = block + run;
  }
  rest[c] = block + bytes;
  return block;
}

static unsigned class_for(size_t alignment, size_t size, int* is_new) {
  *is_new = 0;
  if (alignment <= granule) return class_of(size);
  size = size < alignment ? alignment : size;
  return class_of((size_t)1 << (32 - __builtin_clz((unsigned)size - 1)));
}

#endif

static size_t capacity(uintptr_t block) { return class_bytes(class_at(block)); }
static int can_stay(uintptr_t block, size_t size) { return size <= capacity(block); }

static void* allocate(size_t alignment, size_t size) {
  int is_new;
  unsigned const c = class_for(alignment, size, &is_new);
  uintptr_t block;
  if (size > largest) return NULL;
  block = heads[c];
  if (block == 0 || is_new) return (void*)fresh_block(c, alignment);
  heads[c] = next_of(block);
  return (void*)block;
}

static void release(uintptr_t block) {
  unsigned const c = class_at(block);
  set_next(block, heads[c]);
  heads[c] = block;
}

#endif

void* malloc(size_t size) { return allocate(granule, size); }

void free(void* block) {
  if (block != NULL) release((uintptr_t)block);
}

void* calloc(size_t count, size_t size) {
  void* block = NULL;
  if (!__builtin_mul_overflow(count, size, &size)) block = malloc(size);
  if (block != NULL) __builtin_memset(block, 0, size);
  return block;
}

void* realloc(void* block, size_t size) {
  void* moved;
  if (block == NULL) return malloc(size);
  if (can_stay((uintptr_t)block, size)) return block;
  moved = malloc(size);
  if (moved != NULL) {
    size_t const bytes = capacity((uintptr_t)block);
    copy(moved, block, bytes < size ? bytes : size);
    free(block);
  }
  return moved;
}

void* aligned_alloc(size_t alignment, size_t size) {
  return allocate(alignment < granule ? granule : alignment, size);
}
