/* Records what a program asks of malloc, as an MTR1 trace (tests/traces/README.md).
 *
 * Natively a shared object for LD_PRELOAD, in front of glibc's malloc. As WebAssembly an object
 * that is linked to a program with --wrap=malloc and so on. ASHLAR_RECORD names the file.
 *
 * Nothing here allocates, so nothing here is recorded: tables are static, of which the system gives
 * only what is touched. No descriptor stays open, since programs close those that they don't know.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { op_malloc, op_free, op_calloc, op_realloc, op_aligned };

#ifdef __wasm__
enum { log2_table = 20 };
#else
enum { log2_table = 23 };
#endif
enum { table_size = 1 << log2_table, max_live = table_size / 2, header_bytes = 12 };

/* Which slot a live block has. Address 0: none stands here. */
static struct entry {
  uintptr_t address;
  uint32_t slot;
} table[table_size];
static uint32_t free_slots[max_live];
static uint32_t free_count, slot_count, operation_count;

static unsigned char buffer[1 << 16];
static size_t buffered;
static off_t written;
static char path[4096];
static enum { idle, on, off } state;

/* --- the file --- */

static void store_u32(unsigned char* bytes, uint32_t value) {
  unsigned i;
  for (i = 0; i < 4; ++i) bytes[i] = (unsigned char)(value >> (8 * i));
}

static int write_at(int file, const unsigned char* bytes, size_t size, off_t at) {
  while (size > 0) {
    ssize_t const done = pwrite(file, bytes, size, at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    bytes += done;
    size -= (size_t)done;
    at += done;
  }
  return 1;
}

/* The header is written each time, so that a program that is killed leaves a trace too. */
static void flush(void) {
  int const error = errno;
  int const fresh = written == 0 ? O_TRUNC : 0;
  int const file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | fresh, 0666);
  unsigned char header[header_bytes] = "MTR1";
  store_u32(header + 4, slot_count);
  store_u32(header + 8, operation_count);
  if (written == 0) written = header_bytes;
  if (file < 0 || !write_at(file, buffer, buffered, written) ||
      !write_at(file, header, sizeof header, 0))
    state = off;
  if (file >= 0) close(file);
  written += (off_t)buffered;
  buffered = 0;
  errno = error;
}

static void put_number(size_t number) {
  for (; number >= 128; number >>= 7) buffer[buffered++] = (unsigned char)(number | 128);
  buffer[buffered++] = (unsigned char)number;
}

static void begin_operation(unsigned kind, uint32_t slot) {
  enum { longest = 40 };
  if (buffered > sizeof buffer - longest) flush();
  ++operation_count;
  put_number(kind);
  put_number(slot);
}

/* --- live blocks --- */

static uint32_t home_of(uintptr_t address) {
  return (uint32_t)((address >> 3) * (uint64_t)0x9e3779b97f4a7c15 >> (64 - log2_table));
}

/* Where the block stands, or where it would. */
static uint32_t find(const void* block) {
  uint32_t at = home_of((uintptr_t)block);
  while (table[at].address != 0 && table[at].address != (uintptr_t)block)
    at = (at + 1) & (table_size - 1);
  return at;
}

/* Those that stand behind it because it stood there move up. */
static void take_out(uint32_t hole) {
  uint32_t at = hole;
  for (;;) {
    at = (at + 1) & (table_size - 1);
    if (table[at].address == 0) break;
    uint32_t const home = home_of(table[at].address);
    if (((at - home) & (table_size - 1)) < ((at - hole) & (table_size - 1))) continue;
    table[hole] = table[at];
    hole = at;
  }
  table[hole].address = 0;
}

static void note_free(const void* block) {
  uint32_t const at = find(block);
  /* One from before the recording. */
  if (table[at].address == 0) return;
  begin_operation(op_free, table[at].slot);
  free_slots[free_count++] = table[at].slot;
  take_out(at);
}

static void note_new(unsigned kind, const void* block, size_t alignment, size_t size) {
  struct entry* entry;
  if (block == NULL) return;
  note_free(block); /* given back behind our back */
  if (free_count == 0 && slot_count == max_live) {
    state = off;
    return;
  }
  entry = &table[find(block)];
  entry->address = (uintptr_t)block;
  entry->slot = free_count > 0 ? free_slots[--free_count] : slot_count++;
  begin_operation(kind, entry->slot);
  if (kind == op_aligned) put_number((size_t)__builtin_ctzll(alignment));
  put_number(size);
}

static void note_resize(const void* before, const void* block, size_t size) {
  uint32_t const at = find(before);
  uint32_t const slot = table[at].slot;
  if (before == NULL || table[at].address == 0) {
    note_new(op_malloc, block, 0, size);
    return;
  }
  if (block == NULL) {
    /* glibc's realloc(p, 0) frees; any other null is a refusal, and p is what it was. */
    if (size == 0) note_free(before);
    return;
  }
  take_out(at);
  note_free(block);
  table[find(block)] = (struct entry){(uintptr_t)block, slot};
  begin_operation(op_realloc, slot);
  put_number(size);
}

/* --- begin and end --- */

/* lock() fails where the recorder itself is at work: what the C library allocates for it is none of
 * the program's. */

#ifdef __wasm__

#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
#define REAL_ALIGNED __real_aligned_alloc
static int locked;
static int lock(void) { return locked ? 0 : (locked = 1); }
static void unlock(void) { locked = 0; }
static int is_ours(void) { return 1; }

#else

#include <pthread.h>
#include <sys/syscall.h>

#define OURS(name) name
#define REAL(name) __libc_##name
#define REAL_ALIGNED __libc_memalign
static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pid_t owner;
static int lock(void) { return pthread_mutex_lock(&mutex) == 0; }
static void unlock(void) { pthread_mutex_unlock(&mutex); }
static void stop(void) { state = off; }

/* Only the program that the bench started is recorded, also after it has become another one by
 * exec; not what it starts itself. */
static int is_ours(void) {
  const char* const parent = getenv("ASHLAR_RECORD_PARENT");
  owner = getpid();
  return parent != NULL && atoi(parent) == getppid() && pthread_atfork(NULL, NULL, stop) == 0;
}

#endif

void* REAL(malloc)(size_t size);
void* REAL(calloc)(size_t count, size_t size);
void* REAL(realloc)(void* block, size_t size);
void REAL(free)(void* block);
void* REAL_ALIGNED(size_t alignment, size_t size);

static void start(void) {
  const char* file;
  /* The loader allocates before the C library knows its environment. */
  if (environ == NULL) return;
  state = off;
  file = getenv("ASHLAR_RECORD");
  if (file == NULL || strlen(file) >= sizeof path || !is_ours()) return;
  strcpy(path, file);
  state = on;
}

/* A vfork's child shares the memory of its parent, whose trace this is. */
static void finish(void) {
#ifndef __wasm__
  if (getpid() != owner) return;
#endif
  if (state == on) flush();
}

__attribute__((destructor)) static void finish_at_exit(void) {
  if (state != on || !lock()) return;
  finish();
  unlock();
}

/* Whether this call is to be recorded; the lock is then held. */
static int begin_call(void) {
  if (state == off || !lock()) return 0;
  if (state == idle) start();
  if (state == on) return 1;
  unlock();
  return 0;
}

/* --- the functions in front of the real ones --- */

void* OURS(malloc)(size_t size) {
  void* block;
  if (!begin_call()) return REAL(malloc)(size);
  block = REAL(malloc)(size);
  note_new(op_malloc, block, 0, size);
  unlock();
  return block;
}

void* OURS(calloc)(size_t count, size_t size) {
  void* block;
  if (!begin_call()) return REAL(calloc)(count, size);
  block = REAL(calloc)(count, size);
  note_new(op_calloc, block, 0, count * size);
  unlock();
  return block;
}

void* OURS(realloc)(void* before, size_t size) {
  void* block;
  if (!begin_call()) return REAL(realloc)(before, size);
  block = REAL(realloc)(before, size);
  note_resize(before, block, size);
  unlock();
  return block;
}

void OURS(free)(void* block) {
  if (block == NULL) return;
  if (!begin_call()) {
    REAL(free)(block);
    return;
  }
  note_free(block);
  REAL(free)(block);
  unlock();
}

void* OURS(aligned_alloc)(size_t alignment, size_t size) {
  void* block;
  if (!begin_call()) return REAL_ALIGNED(alignment, size);
  block = REAL_ALIGNED(alignment, size);
  note_new(op_aligned, block, alignment, size);
  unlock();
  return block;
}

int OURS(posix_memalign)(void** result, size_t alignment, size_t size) {
  void* block;
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
    return EINVAL;
  block = OURS(aligned_alloc)(alignment, size);
  if (block == NULL) return ENOMEM;
  *result = block;
  return 0;
}

#ifndef __wasm__

void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

void* valloc(size_t size) { return aligned_alloc((size_t)sysconf(_SC_PAGESIZE), size); }

void* pvalloc(size_t size) {
  size_t const page = (size_t)sysconf(_SC_PAGESIZE);
  return aligned_alloc(page, (size + page - 1) / page * page);
}

/* Ends without destructors. */
void _exit(int status) {
  finish_at_exit();
  for (;;) syscall(SYS_exit_group, status);
}

void _Exit(int status) { _exit(status); }

#endif
