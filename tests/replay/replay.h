/* Replays an allocation trace (MTR1, see tests/traces/README.md) on the program's malloc, or on
 * ashlar_malloc and its family when compiled with REPLAY_ASHLAR_NAMES.
 *
 * The replay itself allocates nothing: the file is read through a fixed buffer, and the table of
 * live blocks is static. So what memory grows by is the allocator's doing. */
#ifndef ASHLAR_TESTS_REPLAY_H
#define ASHLAR_TESTS_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct replay_options {
  int checks;                /* write and test each block's first and last byte, and alignment */
  unsigned long check_every; /* operations between calls of validate; 0: only at the end */
  int (*validate)(void);     /* 0 when the heap is sound; may be null */
};

struct replay_result {
  unsigned long operations;
  unsigned long allocations; /* calls that must have returned a new block, realloc included */
  uint64_t peak_live_bytes;  /* most bytes asked for at once */
  uint64_t checksum;         /* of the operations and of the bytes read back: the same for every
                                allocator in the same mode */
  const char* failure;       /* null when all is well */
  unsigned long failed_at;   /* the operation, from 1 */
};

/* Blocks that are still live at the end are freed. Returns 0 when all is well. */
int replay_trace(const char* path, const struct replay_options* options,
                 struct replay_result* result);

#ifdef __cplusplus
}
#endif

#endif
