// Prints how many of 1000 calls of malloc and of 10 calls of ashlar_malloc Ashlar has served.
#include <ashlar.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long long served() {
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  return stats.allocations;
}

int main() {
  void* volatile block;
  unsigned long long before = served();
  for (int i = 0; i < 1000; ++i) {
    block = malloc(size_t(i));
    free(block);
  }
  unsigned long long by_malloc = served() - before;
  before = served();
  for (int i = 0; i < 10; ++i) {
    block = ashlar_malloc(size_t(i));
    ashlar_free(block);
  }
  printf("malloc %llu, ashlar_malloc %llu\n", by_malloc, served() - before);
}
