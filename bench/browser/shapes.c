// The work of the race in the browser. Each shape is one function: it starts from an empty heap,
// does `steps` steps that are the same whatever the allocator, and leaves an empty heap. Both ends
// of every block are written when it is got and read before it is given back; what was read is the
// checksum, so that an allocator that loses or shares a block is found out.
#include <emscripten.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Block {
  char* bytes;
  uint32_t size;
} Block;

typedef struct Node {
  struct Node* child;
  struct Node* next;
  uint32_t size;
  uint32_t stamp;
} Node;

enum {
  churn_blocks = 10000,
  string_count = 400,
  string_bytes = 8192,
  tree_count = 4,
  tree_depth = 8,
  mixed_blocks = 500
};

extern char __heap_base;

static Block blocks[churn_blocks];
static Node* trees[tree_count];

static uint32_t random_state;
static uint32_t checksum;
static uint32_t operation_count;
static uint32_t live_bytes;
static uint32_t live_peak_bytes;

static void begin(void) {
  random_state = 2463534242u;
  checksum = 0;
  operation_count = 0;
}

// Xorshift: 32 bits of state are plenty for choosing slots and sizes.
static uint32_t random_word(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state;
}

static uint32_t below(uint32_t limit) {
  return (uint32_t)(((uint64_t)random_word() * limit) >> 32);
}

static uint32_t between(uint32_t least, uint32_t most) { return least + below(most - least + 1); }

// Each doubling from 16 bytes to 64 KiB is as likely as any other.
static uint32_t mixed_size(void) {
  uint32_t octave = 16u << below(12);
  return octave + below(octave);
}

static void write_word(char* at, uint32_t word) { memcpy(at, &word, sizeof word); }

static void read_word(const char* at) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  checksum = checksum * 31 + word;
}

// Counts one call of the allocator, which must not fail here.
static void* count(void* block, uint32_t got, uint32_t gave) {
  if (!block) __builtin_trap();
  operation_count++;
  live_bytes += got - gave;
  if (live_bytes > live_peak_bytes) live_peak_bytes = live_bytes;
  return block;
}

static void write_ends(Block* block) {
  write_word(block->bytes, random_word());
  write_word(block->bytes + block->size - 4, random_word());
}

static void read_ends(const Block* block) {
  read_word(block->bytes);
  read_word(block->bytes + block->size - 4);
}

static void take(Block* block, uint32_t size) {
  block->bytes = count(malloc(size), size, 0);
  block->size = size;
  write_ends(block);
}

static void drop(Block* block) {
  read_ends(block);
  count(block->bytes, 0, block->size);
  free(block->bytes);
}

static void resize(Block* block, uint32_t size) {
  uint32_t kept = size < block->size ? size : block->size;
  // Word by word in the middle, so that what the resize kept is checked, not only what it began
  // with.
  write_word(block->bytes + kept - 4, random_word());
  block->bytes = count(realloc(block->bytes, size), size, block->size);
  read_word(block->bytes);
  read_word(block->bytes + kept - 4);
  block->size = size;
  write_ends(block);
}

static void drop_all(uint32_t total) {
  for (uint32_t i = 0; i < total; i++) drop(&blocks[i]);
}

// 10,000 live blocks of 16 to 1024 bytes; a step frees one of them and takes another.
EMSCRIPTEN_KEEPALIVE uint32_t run_churn(uint32_t steps) {
  begin();
  for (uint32_t i = 0; i < churn_blocks; i++) take(&blocks[i], between(16, 1024));
  for (uint32_t i = 0; i < steps; i++) {
    Block* block = &blocks[below(churn_blocks)];
    drop(block);
    take(block, between(16, 1024));
  }
  drop_all(churn_blocks);
  return checksum;
}

// 400 strings that are appended to in any order; a step makes one longer by half, as a string class
// does when it is full, or starts a new one where one has outgrown 8 KiB.
EMSCRIPTEN_KEEPALIVE uint32_t run_strings(uint32_t steps) {
  begin();
  for (uint32_t i = 0; i < string_count; i++) take(&blocks[i], between(16, 32));
  for (uint32_t i = 0; i < steps; i++) {
    Block* string = &blocks[below(string_count)];
    if (string->size < string_bytes) {
      resize(string, string->size + string->size / 2);
    } else {
      drop(string);
      take(string, between(16, 32));
    }
  }
  drop_all(string_count);
  return checksum;
}

static Node* parse(uint32_t depth) {
  uint32_t size = 32 + 8 * below(5);
  Node* node = count(malloc(size), size, 0);
  *node = (Node){.size = size, .stamp = random_word()};
  write_word((char*)node + size - 4, random_word());
  if (depth == 0) return node;
  Node** link = &node->child;
  for (uint32_t children = between(1, 4); children > 0; children--) {
    *link = parse(depth - 1);
    link = &(*link)->next;
  }
  return node;
}

static void tear_down(Node* node) {
  while (node) {
    Node* next = node->next;
    tear_down(node->child);
    read_word((char*)&node->stamp);
    read_word((char*)node + node->size - 4);
    count(node, 0, node->size);
    free(node);
    node = next;
  }
}

// Syntax trees of some thousand nodes of 32 to 64 bytes, the last four of them live. A step is a
// tree.
EMSCRIPTEN_KEEPALIVE uint32_t run_tree(uint32_t steps) {
  begin();
  for (uint32_t i = 0; i < steps; i++) {
    Node** tree = &trees[i % tree_count];
    tear_down(*tree);
    *tree = parse(tree_depth);
  }
  for (uint32_t i = 0; i < tree_count; i++) {
    tear_down(trees[i]);
    trees[i] = NULL;
  }
  return checksum;
}

// 500 live blocks of 16 bytes to 64 KiB; a step resizes one (one time in four) or replaces it.
EMSCRIPTEN_KEEPALIVE uint32_t run_mixed(uint32_t steps) {
  begin();
  for (uint32_t i = 0; i < mixed_blocks; i++) take(&blocks[i], mixed_size());
  for (uint32_t i = 0; i < steps; i++) {
    Block* block = &blocks[below(mixed_blocks)];
    if (below(4) == 0) {
      resize(block, mixed_size());
    } else {
      drop(block);
      take(block, mixed_size());
    }
  }
  drop_all(mixed_blocks);
  return checksum;
}

// Calls of malloc, free and realloc in the last run.
EMSCRIPTEN_KEEPALIVE uint32_t operations(void) { return operation_count; }

// Where the program's own data ends and the heap may begin.
EMSCRIPTEN_KEEPALIVE char* heap_base(void) { return &__heap_base; }

// Most bytes asked for and not given back, in any run so far.
EMSCRIPTEN_KEEPALIVE uint32_t live_peak(void) { return live_peak_bytes; }
