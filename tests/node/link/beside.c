// The core beside the toolchain's malloc: two allocators that know nothing of each other.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ashlar.h"

enum { count = 400 };
static unsigned char* blocks[count];
static size_t sizes[count];

int main(void) {
  uint32_t random = 1;
  for (int step = 0; step < 20000; ++step) {
    random = random * 1664525 + 1013904223;
    const int i = (int)((random >> 8) % count);
    const int ours = i % 2;
    if (blocks[i] != NULL) {
      for (size_t k = 0; k < sizes[i]; ++k) {
        if (blocks[i][k] != (unsigned char)i) return printf("block %d was overwritten\n", i), 1;
      }
      if (ours) {
        ashlar_free(blocks[i]);
      } else {
        free(blocks[i]);
      }
    }
    sizes[i] = (random >> 16) % (step % 16 == 0 ? 60000 : 500);
    blocks[i] = ours ? ashlar_malloc(sizes[i]) : malloc(sizes[i]);
    if (blocks[i] == NULL) return printf("out of memory\n"), 1;
    memset(blocks[i], i, sizes[i]);
  }
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  if (ashlar_check() != 0) return printf("%s\n", ashlar_last_message()), 1;
  printf("beside %s\n", stats.live_blocks <= count / 2 ? "ok" : "fail");
  return 0;
}
