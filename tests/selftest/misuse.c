// Misuse: what must end the program with the right line. In `bare` nothing is caught.
#include "checks.h"

enum fault { DOUBLE_FREE = 1, INTERIOR, FOREIGN, NEVER_ALLOCATED };
enum call { FREE, REALLOC, REALLOC_TO_0, USABLE_SIZE };

static char expected_line[64];

static size_t append(size_t length, const char* text) {
  while (*text != 0) expected_line[length++] = *text++;
  return length;
}

// The words are the contract of include/ashlar.h and README.md, so they are written out again here.
static void expect_line(enum fault fault, uintptr_t address) {
  static const char* const words[] = {"", "double free of", "interior pointer", "foreign pointer",
                                      "never allocated"};
  const char number[] = {(char)('0' + (int)fault), 0};
  size_t length = append(0, "ashlar: ");
  length = append(length, same(profile(), "fast") ? words[fault] : number);
  length = append(length, " 0x");
  unsigned shift = 8 * sizeof(uintptr_t);
  while (shift > 4 && (address >> (shift - 4)) == 0) shift -= 4;
  for (; shift > 0; shift -= 4) {
    expected_line[length++] = "0123456789abcdef"[(address >> (shift - 4)) & 15];
  }
  expected_line[length] = 0;
}

const char* selftest_misuse_expected(void) { return expected_line; }

// The pointers. Each function makes one at which no live block begins.

// So many blocks of a small size that the last ones stand in a page; the last of them.
static uint8_t* block_in_page(size_t size) {
  uint8_t* block = NULL;
  for (int i = 0; i < 300; ++i) block = ashlar_malloc(size);
  return block;
}

static void* freed_in_page(void) {
  void* const block = block_in_page(48);
  ashlar_free(block);
  return block;
}

// The block is not the first of the free list: a test of the list's head alone misses it.
static void* freed_before_another(void) {
  void* const block = block_in_page(48);
  void* const other = ashlar_malloc(48);
  ashlar_free(block);
  ashlar_free(other);
  return block;
}

static void* freed_while_cold(void) {
  void* const block = ashlar_malloc(24);
  void* const guard = ashlar_malloc(24);
  ashlar_free(block);
  return guard == NULL ? NULL : block;
}

static void* freed_in_arena(void) {
  void* const block = ashlar_malloc(5000);
  void* const guard = ashlar_malloc(5000);
  ashlar_free(block);
  return guard == NULL ? NULL : block;
}

// Its place is inside a larger free block now, and its old header must not pass for one.
static void* freed_and_joined(void) {
  void* const before = ashlar_malloc(5000);
  void* const block = ashlar_malloc(5000);
  void* const guard = ashlar_malloc(5000);
  ashlar_free(block);
  ashlar_free(before);
  return guard == NULL ? NULL : block;
}

// From 64 KiB up the seal stands at the block's end.
static void* freed_large(void) {
  void* const block = ashlar_malloc(1024 * KIB);
  void* const guard = ashlar_malloc(5000);
  ashlar_free(block);
  return guard == NULL ? NULL : block;
}

static void* moved_by_realloc(void) {
  void* const block = ashlar_malloc(5000);
  void* const guard = ashlar_malloc(5000);
  void* const moved = ashlar_realloc(block, 50000);
  return guard == NULL || moved == block ? NULL : block;
}

static void* inside_of_page_block(void) { return block_in_page(96) + 16; }
static void* odd_address(void) { return block_in_page(96) + 1; }
static void* inside_of_arena_block(void) { return (uint8_t*)ashlar_malloc(5000) + 160; }
static void* inside_of_large_block(void) { return (uint8_t*)ashlar_malloc(1024 * KIB) + 512 * KIB; }

// An image of a block and its header, inside another block: only the address tells it apart.
static void* image_of_a_block(void) {
  const size_t* const block = ashlar_malloc(5000);
  size_t* const other = ashlar_malloc(20000);
  size_t* const image = other + 64;
  for (int i = -1; i < 8; ++i) image[i] = block[i];
  return image;
}

static void* static_object(void) {
  static _Alignas(16) char object[64];
  return ashlar_malloc(10) == NULL ? NULL : object;
}

static void* stack_object;
static void* on_the_stack(void) { return stack_object; }
static void* low_address(void) { return (void*)(uintptr_t)16; }
static void* last_address(void) { return (void*)(UINTPTR_MAX - 15); }

static void* memory_of_a_stranger(void) {
#ifdef __wasm__
  void* const ours = ashlar_malloc(5000);
  const size_t begin = __builtin_wasm_memory_grow(0, 1) * 64 * KIB;
  return ours == NULL ? NULL : (void*)(begin + 64);
#else
  return NULL;
#endif
}

// A place `count` blocks behind one that is followed by its neighbour in a page. The page is new
// then: nothing there was handed out yet.
static void* beyond(size_t size, size_t count) {
  uint8_t* before = ashlar_malloc(size);
  for (int i = 0; i < 300; ++i) {
    uint8_t* const block = ashlar_malloc(size);
    if (block == before + size) return before + count * size;
    before = block;
  }
  return NULL;
}
// In the free list already.
static void* beyond_handed_out(void) { return beyond(256, 10); }
// A page of 1 KiB blocks is long, and its list is made in pieces.
static void* beyond_list(void) { return beyond(1024, 20); }

struct misuse {
  int code;
  int needs;
  const char* name;
  void* (*make)(void);
  enum call call;
  enum fault fault;
};

// Each line would catch a misuse that goes on as if a block began there, or one that is called by
// another name.
static const struct misuse misuses[] = {
    {81, 0, "double free in a page", freed_in_page, FREE, DOUBLE_FREE},
    {82, 0, "double free in a page, another between", freed_before_another, FREE, DOUBLE_FREE},
    {83, 0, "double free of a first small block", freed_while_cold, FREE, DOUBLE_FREE},
    {84, 0, "double free in the arena", freed_in_arena, FREE, DOUBLE_FREE},
    {85, 0, "double free in the arena, joined", freed_and_joined, FREE, DOUBLE_FREE},
    {86, 0, "double free of 1 MiB", freed_large, FREE, DOUBLE_FREE},
    {87, 0, "free after realloc moved the block", moved_by_realloc, FREE, DOUBLE_FREE},
    {88, 0, "realloc of a freed block in a page", freed_in_page, REALLOC, DOUBLE_FREE},
    {89, 0, "realloc of a freed block in the arena", freed_in_arena, REALLOC, DOUBLE_FREE},
    {90, 0, "realloc to 0 of a freed block", freed_in_page, REALLOC_TO_0, DOUBLE_FREE},
    {91, 0, "usable size of a freed block in a page", freed_in_page, USABLE_SIZE, DOUBLE_FREE},
    {92, 0, "usable size of a freed block in the arena", freed_in_arena, USABLE_SIZE, DOUBLE_FREE},
    {93, 0, "free inside a block in a page", inside_of_page_block, FREE, INTERIOR},
    {94, 0, "free of an odd address", odd_address, FREE, INTERIOR},
    {95, 0, "free inside a block in the arena", inside_of_arena_block, FREE, INTERIOR},
    {96, 0, "free inside 1 MiB", inside_of_large_block, FREE, INTERIOR},
    {97, 0, "free of a block's image", image_of_a_block, FREE, INTERIOR},
    {98, 0, "realloc inside a block in a page", inside_of_page_block, REALLOC, INTERIOR},
    {99, 0, "free of a static object", static_object, FREE, FOREIGN},
    {100, 0, "realloc of a static object", static_object, REALLOC, FOREIGN},
    {101, 0, "free of a stack object", on_the_stack, FREE, FOREIGN},
    {102, 0, "free of address 16", low_address, FREE, FOREIGN},
    {103, 0, "free of the last address", last_address, FREE, FOREIGN},
    {104, NEEDS_WASM, "free in a stranger's memory", memory_of_a_stranger, FREE, FOREIGN},
    {105, NEEDS_PAGES, "free of what was never handed out", beyond_handed_out, FREE,
     NEVER_ALLOCATED},
    {106, NEEDS_PAGES, "free of what was in no list yet", beyond_list, FREE, NEVER_ALLOCATED},
};

int selftest_misuse_count(void) { return (int)(sizeof misuses / sizeof *misuses); }
const char* selftest_misuse_name(int index) { return misuses[index].name; }
int selftest_misuse_code(int index) { return misuses[index].code; }

static void misuse(enum call call, void* pointer) {
  switch (call) {
    case FREE: ashlar_free(pointer); break;
    case REALLOC: (void)ashlar_realloc(pointer, 3000); break;
    case REALLOC_TO_0: (void)ashlar_realloc(pointer, 0); break;
    case USABLE_SIZE: (void)ashlar_usable_size(pointer); break;
  }
}

int selftest_misuse_run(int index) {
  const struct misuse* const m = &misuses[index];
  if (selftest_skips(m->needs | NEEDS_CHECKS)) return SELFTEST_SKIPPED;
  _Alignas(16) volatile char object[64] = {0};
  stack_object = (void*)&object[0];
  expected_line[0] = 0;
  void* const pointer = m->make();
  // With NULL the misuse could not be made, and the call returns.
  if (pointer != NULL) expect_line(m->fault, (uintptr_t)pointer);
  misuse(m->call, pointer);
  return m->code;
}
