// A stack that overflows (row I95), with --stack-first: it traps at address 0 and hits nothing.
#include "cases.h"

static unsigned recurse(unsigned depth, const volatile unsigned char* before) {
  volatile unsigned char frame[4096];
  frame[depth % 4096] = before[depth % 4096];
  return depth + 1 == 0 ? 0 : recurse(depth + 1, frame) + frame[7];
}

static unsigned char* saved[1000];
CASE(I95_fill) {
  for (uint32_t index = 0; index < 1000; index++) {
    REQUIRE(saved[index] = malloc(index));
    fill(saved[index], index, index);
  }
}
CASE(I95_overflow) {
  unsigned char frame[4096] = {0};
  metric("returned", recurse(0, frame));
}
CASE(I95_after) {
  CHECK(ashlar_check() == 0);
  for (uint32_t index = 0; index < 1000; index++) {
    CHECK(intact(saved[index], index, index));
    free(saved[index]);
  }
  CHECK(malloc(1000) != NULL);
}
