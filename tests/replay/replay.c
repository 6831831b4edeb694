/* replay TRACE [check|plain]: replays a trace and prints one line of JSON. */
#define _POSIX_C_SOURCE 200809L
#include "replay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef REPLAY_ASHLAR_NAMES
#include <ashlar.h>
#define heap_malloc ashlar_malloc
#define heap_calloc ashlar_calloc
#define heap_realloc ashlar_realloc
#define heap_free ashlar_free
static void* heap_aligned(size_t alignment, size_t size) {
  return ashlar_aligned_alloc(alignment, size);
}
#else
#define heap_malloc malloc
#define heap_calloc calloc
#define heap_realloc realloc
#define heap_free free
/* Not aligned_alloc: older allocators refuse sizes that are no multiple of the alignment. */
static void* heap_aligned(size_t alignment, size_t size) {
  void* block = NULL;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}
#endif

#ifndef REPLAY_MAX_SLOTS
#define REPLAY_MAX_SLOTS (1u << 18)
#endif

struct slot {
  unsigned char* block;
  size_t size;
};
static struct slot slots[REPLAY_MAX_SLOTS];
static unsigned long marks[REPLAY_MAX_SLOTS]; /* the operation that wrote the slot's marks */

static int input = -1;
static unsigned char buffer[1 << 15];
static size_t buffer_length, buffer_at;
static int input_failed;

static unsigned next_byte(void) {
  if (buffer_at == buffer_length) {
    ssize_t const got = read(input, buffer, sizeof buffer);
    buffer_at = 0;
    buffer_length = got > 0 ? (size_t)got : 0;
    if (buffer_length == 0) {
      input_failed = 1;
      return 0;
    }
  }
  return buffer[buffer_at++];
}

static size_t next_number(void) {
  size_t number = 0;
  unsigned shift = 0, byte;
  do {
    byte = next_byte();
    number |= (size_t)(byte & 127u) << shift;
    shift += 7;
  } while (byte >= 128 && shift < 8 * sizeof number);
  return number;
}

static uint32_t next_u32(void) {
  uint32_t number = 0;
  unsigned i;
  for (i = 0; i < 4; ++i) number |= (uint32_t)next_byte() << (8 * i);
  return number;
}

static uint64_t mix(uint64_t sum, uint64_t value) {
  sum ^= value;
  sum ^= sum << 13;
  sum ^= sum >> 7;
  sum ^= sum << 17;
  return sum;
}

/* First and last byte of a block. Both tell the operation that wrote them; a block of one byte
 * holds the last one. */
static void mark(struct slot const* slot, unsigned long operation) {
  if (slot->size == 0) return;
  slot->block[0] = (unsigned char)(operation & 255u);
  slot->block[slot->size - 1] = (unsigned char)((operation >> 8) & 255u);
}

enum { op_malloc, op_free, op_calloc, op_realloc, op_aligned };

static int still_marked(struct slot const* slot, unsigned long operation) {
  size_t const size = slot->size;
  if (size == 0) return 1;
  if (size == 1) return slot->block[0] == (unsigned char)((operation >> 8) & 255u);
  return slot->block[0] == (unsigned char)(operation & 255u) &&
         slot->block[size - 1] == (unsigned char)((operation >> 8) & 255u);
}

static const char* replay(const struct replay_options* options, struct replay_result* result) {
  unsigned char magic[4];
  uint32_t slot_count, operation_count;
  uint64_t live_bytes = 0;
  unsigned long done;
  size_t i;

  for (i = 0; i < 4; ++i) magic[i] = (unsigned char)next_byte();
  if (memcmp(magic, "MTR1", 4) != 0) return "not an MTR1 trace";
  slot_count = next_u32();
  operation_count = next_u32();
  if (slot_count > REPLAY_MAX_SLOTS) return "too many slots: raise REPLAY_MAX_SLOTS";

  for (done = 1; done <= operation_count; ++done) {
    unsigned const kind = next_byte();
    size_t const index = next_number();
    struct slot* const slot = &slots[index < slot_count ? index : 0];
    size_t alignment = 1, size = 0;
    void* block = NULL;

    result->failed_at = done;
    if (index >= slot_count || kind > op_aligned) return "a malformed operation";
    if (kind == op_aligned) alignment = (size_t)1 << (next_number() & (8 * sizeof(size_t) - 1));
    if (kind != op_free) size = next_number();
    if (input_failed) return "the trace ends early";
    result->checksum = mix(result->checksum, kind * 31u + index * 7u + size);

    if (options->checks && slot->block != NULL && kind != op_malloc && kind != op_calloc) {
      if (!still_marked(slot, marks[index])) return "a live block's bytes changed";
      if (slot->size != 0) result->checksum = mix(result->checksum, slot->block[slot->size - 1]);
    }
    if (kind == op_free) {
      heap_free(slot->block);
      live_bytes -= slot->size;
      slot->block = NULL;
      slot->size = 0;
    } else {
      if (kind == op_malloc) block = heap_malloc(size);
      if (kind == op_calloc) block = heap_calloc(1, size);
      if (kind == op_realloc) block = heap_realloc(slot->block, size);
      if (kind == op_aligned) block = heap_aligned(alignment, size);
      if (block == NULL) return "out of memory";
      ++result->allocations;
      live_bytes = live_bytes - slot->size + size;
      if (live_bytes > result->peak_live_bytes) result->peak_live_bytes = live_bytes;
      if (options->checks) {
        size_t const kept = slot->size < size ? slot->size : size;
        if ((uintptr_t)block % (alignment > 8 ? alignment : 8) != 0) return "a misaligned block";
        if (kind == op_calloc && size != 0) {
          unsigned char const* const bytes = block;
          if (bytes[0] != 0 || memcmp(bytes, bytes + 1, size - 1) != 0)
            return "calloc's block is not zero";
        }
        /* A realloc keeps the first byte; the last one only when the size stays. */
        if (kind == op_realloc && slot->size > 1 && kept > 0 &&
            *(unsigned char*)block != (unsigned char)(marks[index] & 255u))
          return "realloc lost the first byte";
        if (kind == op_realloc && slot->size != 0 && kept == slot->size &&
            ((unsigned char*)block)[kept - 1] != (unsigned char)((marks[index] >> 8) & 255u))
          return "realloc lost the last byte";
      }
      slot->block = block;
      slot->size = size;
      marks[index] = done;
      if (options->checks) mark(slot, done);
    }
    result->operations = done;
    if (options->validate != NULL && options->check_every != 0 &&
        done % options->check_every == 0 && options->validate() != 0)
      return "the heap's validation failed";
  }

  for (i = 0; i < slot_count; ++i) {
    if (slots[i].block == NULL) continue;
    if (options->checks && !still_marked(&slots[i], marks[i]))
      return "a live block's bytes changed";
    heap_free(slots[i].block);
    slots[i].block = NULL;
    slots[i].size = 0;
  }
  if (options->validate != NULL && options->validate() != 0) return "the heap's validation failed";
  result->failed_at = 0;
  return NULL;
}

int replay_trace(const char* path, const struct replay_options* options,
                 struct replay_result* result) {
  memset(result, 0, sizeof *result);
  memset(slots, 0, sizeof slots);
  result->checksum = 1;
  buffer_length = buffer_at = 0;
  input_failed = 0;
  input = open(path, O_RDONLY);
  if (input < 0) {
    result->failure = "cannot open the trace";
    return 1;
  }
  result->failure = replay(options, result);
  close(input);
  return result->failure != NULL;
}

#ifndef REPLAY_NO_MAIN

#include <ashlar.h>
#include <stdio.h>

/* Used when Ashlar is linked in, whoever's malloc is replayed on. A weak reference takes no member
 * out of an archive: REPLAY_ASHLAR_STATS asks for it. */
#if !defined(REPLAY_ASHLAR_NAMES) && !defined(REPLAY_ASHLAR_STATS)
__attribute__((weak)) void ashlar_stats(ashlar_stats_t* stats);
__attribute__((weak)) int ashlar_check(void);
#define ashlar_is_there (ashlar_stats != NULL && ashlar_check != NULL)
#else
#define ashlar_is_there 1
#endif

int main(int argc, char** argv) {
  struct replay_options options = {1, 0, NULL};
  struct replay_result result;
  char const* const mode = argc > 2 ? argv[2] : "check";
  int failed;

  if (argc < 2 || (strcmp(mode, "check") != 0 && strcmp(mode, "plain") != 0)) {
    fprintf(stderr, "usage: %s TRACE [check|plain]\n", argv[0]);
    return 2;
  }
  options.checks = strcmp(mode, "check") == 0;
  if (options.checks && ashlar_is_there) {
    options.validate = ashlar_check;
    options.check_every = 20000;
  }
  failed = replay_trace(argv[1], &options, &result);
  printf(
      "{\"operations\":%lu,\"allocations\":%lu,\"peak_live_bytes\":%llu,\"checksum\":\"%016llx\"",
      result.operations, result.allocations, (unsigned long long)result.peak_live_bytes,
      (unsigned long long)result.checksum);
  if (ashlar_is_there) {
    ashlar_stats_t stats;
    ashlar_stats(&stats);
    printf(
        ",\"ashlar\":{\"allocations\":%llu,\"used_peak_bytes\":%lu,\"committed_bytes\":%lu,"
        "\"grow_count\":%lu}",
        (unsigned long long)stats.allocations, (unsigned long)stats.used_peak_bytes,
        (unsigned long)stats.committed_bytes, (unsigned long)stats.grow_count);
  }
  if (failed) printf(",\"failure\":\"%s\",\"failed_at\":%lu", result.failure, result.failed_at);
  printf("}\n");
  return failed;
}

#endif
