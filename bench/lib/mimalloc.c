/* mimalloc as a peer: its own single source file, for WASI with its own OS layer (sbrk). Compiled
 * with its folders on the include path (arms.mjs).
 *
 * Below stands what it asks of a C library beside memory: its options come from the environment,
 * its messages go to stderr and its statistics want a clock. A bench needs none of them, and
 * without them the module needs no host. */
#include <static.c>

void* aligned_alloc(size_t alignment, size_t size) { return mi_malloc_aligned(size, alignment); }

char** environ = NULL;

long strtol(const char* text, char** end, int base) {
  (void)base;
  if (end != NULL) *end = (char*)text;
  return 0;
}

int fputs(const char* text, FILE* file) {
  (void)text;
  (void)file;
  return 0;
}

int vsnprintf(char* buffer, size_t size, const char* format, va_list arguments) {
  (void)format;
  (void)arguments;
  if (size > 0) buffer[0] = 0;
  return 0;
}

int snprintf(char* buffer, size_t size, const char* format, ...) {
  (void)format;
  if (size > 0) buffer[0] = 0;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  (void)clock;
  now->tv_sec = now->tv_nsec = 0;
  return 0;
}

int atexit(void (*function)(void)) {
  (void)function;
  return 0;
}

int sched_yield(void) { return 0; }

void abort(void) { __builtin_trap(); }
