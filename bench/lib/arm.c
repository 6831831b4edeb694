/* An allocator that wasm2c translated, as a shared object: whatever runs in this object is the
 * allocator's own work. Compiled with -DARM_SOURCE="arm's .c".
 *
 * Memory is one reservation of 4 GiB and a guard behind it, so that no access is tested in software
 * (V8 does the same), and growing it costs nothing here. Copying and filling are ours, since the
 * C library's choose their instructions by the machine's CPU. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include ARM_SOURCE

typedef unsigned char vector __attribute__((vector_size(16), aligned(1), may_alias));

__attribute__((visibility("hidden"))) void* memmove(void* to, const void* from, size_t size) {
  unsigned char* out = to;
  const unsigned char* in = from;
  if ((uintptr_t)out - (uintptr_t)in >= size) {
    for (; size >= 16; size -= 16, out += 16, in += 16) *(vector*)out = *(const vector*)in;
    for (; size > 0; --size) *out++ = *in++;
  } else {
    for (; size >= 16; size -= 16) *(vector*)(out + size - 16) = *(const vector*)(in + size - 16);
    for (; size > 0; --size) out[size - 1] = in[size - 1];
  }
  return to;
}

__attribute__((visibility("hidden"))) void* memcpy(void* to, const void* from, size_t size) {
  return memmove(to, from, size);
}

__attribute__((visibility("hidden"))) void* memset(void* to, int value, size_t size) {
  unsigned char* out = to;
  vector const wide = (unsigned char)value - (vector){0};
  for (; size >= 16; size -= 16, out += 16) *(vector*)out = wide;
  for (; size > 0; --size) *out++ = (unsigned char)value;
  return to;
}

static const uint64_t reserved_bytes = (uint64_t)8 << 30;
static Z_arm_instance_t instance;
static uint32_t grow_count;

void wasm_rt_trap(wasm_rt_trap_t trap) {
  fprintf(stderr, "bench: the allocator trapped (%d)\n", (int)trap);
  _Exit(3);
}

bool wasm_rt_is_initialized(void) { return true; }

uint32_t wasm_rt_register_func_type(uint32_t params, uint32_t results, ...) {
  return params * 16 + results + 1;
}

void wasm_rt_allocate_memory(wasm_rt_memory_t* memory, uint32_t pages, uint32_t max_pages) {
  unsigned char* const reserved = mmap(NULL, reserved_bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) wasm_rt_trap(WASM_RT_TRAP_OOB);
  /* So that an address is aligned here as it is in wasm. */
  memory->data = reserved + (-(uintptr_t)reserved & 0xffff);
  memory->pages = pages;
  memory->size = pages << 16;
  memory->max_pages = max_pages;
}

uint32_t wasm_rt_grow_memory(wasm_rt_memory_t* memory, uint32_t delta) {
  uint32_t const before = memory->pages;
  ++grow_count;
  if ((uint64_t)before + delta >= 65536) return UINT32_MAX;
  memory->pages += delta;
  memory->size = memory->pages << 16;
  return before;
}

void wasm_rt_free_memory(wasm_rt_memory_t* memory) { (void)memory; }

void wasm_rt_allocate_funcref_table(wasm_rt_funcref_table_t* table, uint32_t elements,
                                    uint32_t max_elements) {
  table->data = calloc(elements, sizeof *table->data);
  table->size = elements;
  table->max_size = max_elements;
}

void wasm_rt_free_funcref_table(wasm_rt_funcref_table_t* table) { free(table->data); }

/* What runner.c looks up. */

/* Ashlar has the one, a peer with constructors the other. */
extern u32 Z_armZ_ashlar_used_peak(Z_arm_instance_t*) __attribute__((weak));
extern void Z_armZ___wasm_call_ctors(Z_arm_instance_t*) __attribute__((weak));

void* arm_start(void) {
  Z_arm_init_module();
  Z_arm_instantiate(&instance);
  if (Z_armZ___wasm_call_ctors != NULL) Z_armZ___wasm_call_ctors(&instance);
  return &instance;
}

uint8_t* arm_memory(void) { return instance.w2c_memory.data; }
uint32_t arm_memory_end(void) { return instance.w2c_memory.pages << 16; }
uint32_t arm_grow_count(void) { return grow_count; }
uint32_t arm_used_peak(void) {
  return Z_armZ_ashlar_used_peak != NULL ? Z_armZ_ashlar_used_peak(&instance) : 0;
}
