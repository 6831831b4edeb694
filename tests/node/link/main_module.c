// A main module and a side module exchange blocks.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ashlar.h"

int main(void) {
  void* const library = dlopen("side.wasm", RTLD_NOW);
  if (library == NULL) return printf("%s\n", dlerror()), 1;
  char* (*const text_of_side)(size_t) = (char* (*)(size_t))dlsym(library, "text_of_side");
  void (*const free_by_side)(char*) = (void (*)(char*))dlsym(library, "free_by_side");
  for (int i = 0; i < 1000; ++i) {
    char* text = text_of_side(100 + (size_t)i);
    if (ashlar_usable_size(text) < 100) return 2;
    free(text);
    free_by_side(malloc(100));
  }
  printf("main module %s\n", ashlar_check() == 0 ? "ok" : "fail");
  return 0;
}
