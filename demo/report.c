#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ashlar.h"

/* Weak: a program linked with its toolchain's own malloc has no Ashlar, and says so. */
extern __attribute__((weak)) void ashlar_stats(ashlar_stats_t* stats);
extern __attribute__((weak)) const char* ashlar_version(void);

typedef void (*StatsFunction)(ashlar_stats_t*);
typedef const char* (*VersionFunction)(void);

#if defined(__linux__)
#include <dlfcn.h>

/* A preloaded library is found at run time, not by the link. */
static StatsFunction find_stats(void) {
  return ashlar_stats ? ashlar_stats : (StatsFunction)dlsym(RTLD_DEFAULT, "ashlar_stats");
}

static VersionFunction find_version(void) {
  return ashlar_version ? ashlar_version : (VersionFunction)dlsym(RTLD_DEFAULT, "ashlar_version");
}

/* Not getrusage: its peak includes the process that forked this one. */
static uint64_t peak_rss(void) {
  uint64_t kib = 0;
  char line[128];
  FILE* status = fopen("/proc/self/status", "r");
  if (!status) return 0;
  while (fgets(line, sizeof line, status)) {
    if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1) break;
  }
  fclose(status);
  return kib * 1024;
}
#else
static StatsFunction find_stats(void) { return ashlar_stats; }
static VersionFunction find_version(void) { return ashlar_version; }
static uint64_t peak_rss(void) { return 0; }
#endif

static struct timespec begin;
static uint64_t live_peak;

void report_begin(void) { clock_gettime(CLOCK_MONOTONIC, &begin); }

void report_sample(void) {
  ashlar_stats_t stats = {0};
  StatsFunction read_stats = find_stats();
  if (read_stats) read_stats(&stats);
  if (stats.live_bytes > live_peak) live_peak = stats.live_bytes;
}

void report_end(void) {
  struct timespec end;
  ashlar_stats_t stats = {0};
  StatsFunction read_stats = find_stats();
  VersionFunction read_version = find_version();
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (read_stats) read_stats(&stats);
  fprintf(stderr,
          "ashlar-demo: allocations=%" PRIu64 " live_peak=%" PRIu64 " used_peak=%" PRIu64
          " rss=%" PRIu64 " us=%" PRId64 " version=%s\n",
          stats.allocations, live_peak, (uint64_t)stats.used_peak_bytes, peak_rss(),
          (int64_t)(end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000,
          read_version ? read_version() : "none");
}
