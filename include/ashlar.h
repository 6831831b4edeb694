/* Ashlar: a memory allocator for WebAssembly and native programs. The C interface.
 *
 * Units: every size is in bytes. Thread rules: in the native library every function may be called
 * from any thread at any time; the wasm builds are single-threaded. No function but those that
 * return a new block ever allocates, and none calls back into the program.
 *
 * Misuse: a pointer given to free, realloc or usable_size at which no live block begins (freed
 * before, inside a block, on the stack, a static, another allocator's) stops the program with one
 * line such as "ashlar: double free of 0x1a40" on standard error and in ashlar_last_message().
 * The `bare` profile checks nothing; `small` says a number for the fault (see README.md).
 */
#ifndef ASHLAR_H
#define ASHLAR_H

#include <stddef.h>
#include <stdint.h>

#define ASHLAR_VERSION_MAJOR 0
#define ASHLAR_VERSION_MINOR 1
#define ASHLAR_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(ASHLAR_NO_VISIBILITY)
#define ASHLAR_API __attribute__((visibility("default")))
#else
#define ASHLAR_API
#endif

/* Allocation. Every block is aligned to alignof(max_align_t) of the target (8 on Emscripten, 16
 * elsewhere). On failure the result is NULL with errno ENOMEM (where the target has an errno), the
 * heap still works, and nothing was changed. A size of 0 gives a unique block. */

/* `size` bytes, contents undefined. */
ASHLAR_API void* ashlar_malloc(size_t size);

/* `count * size` bytes, all zero; ENOMEM when the product overflows. */
ASHLAR_API void* ashlar_calloc(size_t count, size_t size);

/* Resizes `block`, moving it when it cannot stay; NULL allocates. The first min(old, new) bytes are
 * kept. Size 0 shrinks the block to the smallest one and returns it: it never frees. A refusal
 * leaves the block as it was. */
ASHLAR_API void* ashlar_realloc(void* block, size_t size);

/* `size` bytes at a multiple of `alignment`, a power of two (NULL with EINVAL otherwise). `size`
 * need not be a multiple of `alignment`. Free and realloc as any other block; realloc keeps only
 * the target's own alignment when it moves the block. */
ASHLAR_API void* ashlar_aligned_alloc(size_t alignment, size_t size);

/* Gives `block` back; NULL does nothing. errno is kept. */
ASHLAR_API void ashlar_free(void* block);

/* How many bytes of `block` are the caller's: at least what was asked for. 0 for NULL. */
ASHLAR_API size_t ashlar_usable_size(const void* block);

/* The usable size that a request of `size` would get at least: asking for it costs no more memory.
 * Returns `size` when no such block can exist. */
ASHLAR_API size_t ashlar_good_size(size_t size);

/* Growth. */

/* Takes memory from the system now, so that requests of `bytes` more in sum, their headers and
 * alignment included, are served without growing. Blocks up to 1 KiB cost up to 1/8 more than their
 * sum, and each of their sizes a page of 4 to 60 KiB that it may not fill: ask for as much more.
 * 0, or -1 with errno ENOMEM when refused. */
ASHLAR_API int ashlar_reserve(size_t bytes);

/* Sets how much is taken when memory must grow: at least the `1/divisor` part of what is held
 * already. Default 16. 0 asks each time for no more than is needed; where strangers grow memory
 * too, that leaves many regions, and a free looks for its own among them. Returns the value before.
 */
ASHLAR_API unsigned ashlar_set_growth(unsigned divisor);

/* Facts. */

/* Most bytes of system memory ever in use at once, the allocator's own data included. Memory taken
 * but never written is not counted while more can follow it; once memory had to be taken elsewhere,
 * it is. Never falls. */
ASHLAR_API size_t ashlar_used_peak(void);

typedef struct ashlar_stats_t {
  uint64_t allocations;   /* blocks ever handed out; a realloc that moves a block counts as one */
  uint64_t frees;         /* blocks ever given back */
  size_t live_blocks;     /* handed out and not given back */
  size_t live_bytes;      /* usable bytes of those */
  size_t committed_bytes; /* taken from the system, the allocator's static data included */
  size_t used_peak_bytes; /* as ashlar_used_peak() */
  size_t free_bytes;      /* of the committed, free for any request */
  size_t free_blocks;     /* runs of those */
  size_t largest_free_bytes; /* longest run of those */
  size_t grow_count;         /* times memory was taken from the system */
} ashlar_stats_t;

/* Fills in the statistics. Exact. Walks all pages and all large blocks; the counters cost the
 * allocation paths nothing. */
ASHLAR_API void ashlar_stats(ashlar_stats_t* stats);

/* Validates every structure of the heap: 0 when all is well, otherwise 1, and
 * ashlar_last_message() names the first fault. Never stops the program. Time in proportion to the
 * number of blocks. */
ASHLAR_API int ashlar_check(void);

/* The last line of misuse or failed validation, without a newline; "" when there was none. The
 * text stays valid, and changes with the next message. */
ASHLAR_API const char* ashlar_last_message(void);

/* The fingerprint that stands in every program that holds Ashlar: "ashlar VERSION PROFILE". */
ASHLAR_API const char* ashlar_version(void);

#ifdef __cplusplus
}
#endif

#endif
