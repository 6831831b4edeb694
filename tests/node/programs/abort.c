// What emcc's ABORTING_MALLOC=1 does (row B24): the glue ends the program when memory cannot grow.
// That is for requests that cannot be served, not for growth taken in advance.
#include "cases.h"

CASE(B24_fill) {
  // Writes what was served so far where the host can read it after the end.
  static volatile double served;
  for (;;) {
    void* block = malloc(1000);
    if (!block) break;
    served += 1000;
    if ((size_t)served % 100000 == 0) metric("served", served);
  }
  metric("null", 1);
}

CASE(B24_large) {
  for (int blocks = 0; blocks < 8; blocks++) {
    metric("blocks", blocks);
    if (!malloc(512 * MIB)) break;
  }
  metric("null", 1);
}
