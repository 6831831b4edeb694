// A program with nothing but one malloc: what it imports, how much memory it takes, and what
// becomes of a double free where there is no stdio to print with.
#include <stdlib.h>

#include "ashlar.h"

__attribute__((used, export_name("start_pages"))) unsigned start_pages(void);
unsigned start_pages(void) { return (unsigned)__builtin_wasm_memory_size(0); }

static void* volatile block;
__attribute__((used, export_name("one_malloc"))) unsigned one_malloc(void);
unsigned one_malloc(void) {
  block = malloc(10);
  return (unsigned)__builtin_wasm_memory_size(0);
}

__attribute__((used, export_name("free_it"))) void free_it(void);
void free_it(void) { free(block); }

__attribute__((used, export_name("message"))) const char* message(void);
const char* message(void) { return ashlar_last_message(); }
