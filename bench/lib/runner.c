/* runner ARM.so trace FILE | runner ARM.so shape NAME SEED | runner shapes
 *
 * Gives the work to an allocator that was translated from wasm (arm.c), and prints the facts as a
 * line of JSON. Under callgrind only what is to be measured is collected. The work itself and this
 * file are another object than the allocator, so callgrind tells them apart to the instruction. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <valgrind/callgrind.h>

#include "heap.h"

struct arm {
  void* instance;
  unsigned char* memory;
  uint32_t (*malloc)(void*, uint32_t);
  void (*free)(void*, uint32_t);
  uint32_t (*calloc)(void*, uint32_t, uint32_t);
  uint32_t (*realloc)(void*, uint32_t, uint32_t);
  uint32_t (*aligned_alloc)(void*, uint32_t, uint32_t);
};
static struct arm arm;

static void* native(uint32_t address) { return address == 0 ? NULL : arm.memory + address; }
static uint32_t address_of(const void* block) {
  return block == NULL ? 0 : (uint32_t)((const unsigned char*)block - arm.memory);
}

void* arm_heap_malloc(size_t size) { return native(arm.malloc(arm.instance, (uint32_t)size)); }
void arm_heap_free(void* block) { arm.free(arm.instance, address_of(block)); }
void* arm_heap_calloc(size_t count, size_t size) {
  return native(arm.calloc(arm.instance, (uint32_t)count, (uint32_t)size));
}
void* arm_heap_realloc(void* block, size_t size) {
  return native(arm.realloc(arm.instance, address_of(block), (uint32_t)size));
}
void* arm_heap_aligned_alloc(size_t alignment, size_t size) {
  return native(arm.aligned_alloc(arm.instance, (uint32_t)alignment, (uint32_t)size));
}

/* wasm2c's name of an export of the module "arm"; slowed.c's functions have a prefix. */
#ifndef ARM_PREFIX
#define ARM_PREFIX ""
#endif
#define ARM_EXPORT(name) "Z_armZ_" ARM_PREFIX #name

static void* library;

static int look_up(const char* name, void* function) {
  void* const found = dlsym(library, name);
  if (found == NULL) fprintf(stderr, "bench: the allocator has no %s\n", name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static int load(const char* path) {
  void* (*start)(void);
  unsigned char* (*memory)(void);
  library = dlopen(path, RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "bench: %s\n", dlerror());
    return 0;
  }
  if (!look_up("arm_start", &start) || !look_up("arm_memory", &memory) ||
      !look_up(ARM_EXPORT(malloc), &arm.malloc) || !look_up(ARM_EXPORT(free), &arm.free) ||
      !look_up(ARM_EXPORT(calloc), &arm.calloc) || !look_up(ARM_EXPORT(realloc), &arm.realloc) ||
      !look_up(ARM_EXPORT(aligned_alloc), &arm.aligned_alloc))
    return 0;
  arm.instance = start();
  arm.memory = memory();
  return 1;
}

static uint32_t ask(const char* name) {
  uint32_t (*function)(void);
  return look_up(name, &function) ? function() : 0;
}

static int run_trace(const char* path) {
  FILE* const file = fopen(path, "rb");
  size_t count;
  if (file == NULL) {
    fprintf(stderr, "bench: cannot read %s\n", path);
    return 0;
  }
  while ((count = fread(trace_buffer(), sizeof(struct operation), trace_chunk, file)) > 0) {
    CALLGRIND_TOGGLE_COLLECT;
    trace_replay((uint32_t)count);
    CALLGRIND_TOGGLE_COLLECT;
  }
  fclose(file);
  return 1;
}

static uint32_t measured_from;

static int run_shape(const char* name, uint32_t seed) {
  uint32_t index = 0;
  while (shape_name(index) != NULL && strcmp(shape_name(index), name) != 0) ++index;
  if (shape_name(index) == NULL) {
    fprintf(stderr, "bench: no shape %s\n", name);
    return 0;
  }
  shape_start(index, seed);
  if (!shape_is_fresh(index)) shape_round(index);
  measured_from = facts.operations;
  CALLGRIND_TOGGLE_COLLECT;
  shape_round(index);
  CALLGRIND_TOGGLE_COLLECT;
  return 1;
}

static void print_shapes(void) {
  uint32_t index;
  for (index = 0; shape_name(index) != NULL; ++index) puts(shape_name(index));
}

int main(int argc, char** argv) {
  uint32_t begin;
  int done = 0;
  if (argc == 2 && strcmp(argv[1], "shapes") == 0) {
    print_shapes();
    return 0;
  }
  if (argc < 4 || !load(argv[1])) return 2;
  begin = ask("arm_memory_end");
  if (strcmp(argv[2], "trace") == 0) done = run_trace(argv[3]);
  if (strcmp(argv[2], "shape") == 0 && argc > 4)
    done = run_shape(argv[3], (uint32_t)strtoul(argv[4], NULL, 10));
  if (!done) return 2;
  printf(
      "{\"operations\":%u,\"failures\":%u,\"checksum\":%u,\"peak_live\":%u,\"grown\":%u,"
      "\"grows\":%u,\"used_peak\":%u}\n",
      facts.operations - measured_from, facts.failures, facts.checksum, facts.peak_live_bytes,
      ask("arm_memory_end") - begin, ask("arm_grow_count"), ask("arm_used_peak"));
  return 0;
}
