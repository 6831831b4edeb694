/* What the checks are made of, and the list of them. */
#ifndef ASHLAR_SELFTEST_CHECKS_H
#define ASHLAR_SELFTEST_CHECKS_H

#include "ashlar.h"
#include "selftest.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define VERSION \
  TEXT(ASHLAR_VERSION_MAJOR) "." TEXT(ASHLAR_VERSION_MINOR) "." TEXT(ASHLAR_VERSION_PATCH)

/* A check ends at the first condition that does not hold, and says which. */
typedef const char* verdict;
#define PASSED NULL
#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) return __FILE_NAME__ ":" TEXT(__LINE__) ": " #condition; \
  } while (0)
#define TRY(call)                      \
  do {                                 \
    verdict const found = (call);      \
    if (found != PASSED) return found; \
  } while (0)

/* What a check or a misuse needs of the target and of the profile. */
enum { NEEDS_WASM = 1, NEEDS_PAGES = 2, NEEDS_CHECKS = 4 };

/* The checks: code, what it needs, name, function. What leaves gaps in the memory, a message, or no
 * memory comes last: selftest_all() runs all in one heap. */
#define CHECKS(CHECK)                                                         \
  CHECK(1, 0, "version", check_version)                                       \
  CHECK(2, 0, "first malloc takes little", check_first_malloc)                \
  CHECK(3, 0, "alignment", check_alignment)                                   \
  CHECK(4, 0, "blocks do not overlap", check_no_overlap)                      \
  CHECK(5, 0, "size 0", check_size_0)                                         \
  CHECK(6, 0, "NULL", check_null)                                             \
  CHECK(7, 0, "calloc of fresh memory", check_calloc_fresh)                   \
  CHECK(8, 0, "calloc of used memory, small", check_calloc_used_small)        \
  CHECK(9, 0, "calloc of used memory, large", check_calloc_used_large)        \
  CHECK(10, 0, "calloc overflow", check_calloc_overflow)                      \
  CHECK(11, 0, "realloc grows", check_realloc_grows)                          \
  CHECK(12, 0, "realloc shrinks", check_realloc_shrinks)                      \
  CHECK(13, 0, "realloc in place", check_realloc_in_place)                    \
  CHECK(14, 0, "realloc at the end of memory", check_realloc_at_end)          \
  CHECK(15, 0, "aligned_alloc", check_aligned)                                \
  CHECK(16, 0, "aligned_alloc gives back the rest", check_aligned_gives_back) \
  CHECK(17, 0, "bad alignment", check_bad_alignment)                          \
  CHECK(18, 0, "good and usable size", check_sizes)                           \
  CHECK(19, 0, "reuse", check_reuse)                                          \
  CHECK(20, 0, "joins the free block before", check_joins_before)             \
  CHECK(21, 0, "joins the free block behind", check_joins_behind)             \
  CHECK(22, 0, "joins both free blocks", check_joins_both)                    \
  CHECK(23, 0, "pages are given back", check_pages_given_back)                \
  CHECK(42, 0, "empty pages make room", check_empty_pages)                    \
  CHECK(24, 0, "holes in full pages are used", check_holes_used)              \
  CHECK(25, 0, "a class gets pages", check_class_gets_pages)                  \
  CHECK(26, 0, "ranges of the page map", check_ranges)                        \
  CHECK(27, 0, "large blocks", check_large)                                   \
  CHECK(28, 0, "growth", check_growth)                                        \
  CHECK(29, 0, "set_growth", check_set_growth)                                \
  CHECK(30, 0, "reserve", check_reserve)                                      \
  CHECK(31, 0, "impossible sizes", check_impossible_sizes)                    \
  CHECK(32, 0, "statistics of blocks", check_stats)                           \
  CHECK(33, 0, "statistics of free memory", check_free_stats)                 \
  CHECK(34, 0, "used peak", check_used_peak)                                  \
  CHECK(35, 0, "random, small", check_random_small)                           \
  CHECK(36, 0, "random, mixed", check_random_mixed)                           \
  CHECK(37, NEEDS_WASM, "own memory only", check_own_memory_only)             \
  CHECK(38, NEEDS_WASM, "a stranger grows memory", check_stranger)            \
  CHECK(39, 0, "no message without a fault", check_no_message)                \
  CHECK(40, 0, "validation sees damage", check_sees_damage)                   \
  CHECK(41, NEEDS_WASM, "memory ends", check_memory_ends)

#define DECLARE(code, needs, name, run) verdict run(void);
CHECKS(DECLARE)
#undef DECLARE

/* Whether something is missing here, which selftest_detail() then says. */
int selftest_skips(int needs);

/* The third word of ashlar_version(). */
const char* profile(void);

int starts_with(const char* text, const char* start);
int same(const char* a, const char* b);

/* Contents: a block holds words made of its mark and their index, so that one that lies on another
 * or was moved by some bytes shows. A block's beginning holds what a shorter one would. */
uint32_t word_for(uint32_t mark, size_t index);
void fill(void* block, size_t bytes, uint32_t mark);
int holds(const void* block, size_t bytes, uint32_t mark);
int is_zero(const void* block, size_t bytes);
int is_aligned(const void* block, size_t to);

ashlar_stats_t stats(void);
/* More than any free block has: it comes from the end of the memory, which grows for it. */
size_t more_than_free(void);

/* Starts again from the seed. */
void random_start(void);
uint32_t random_below(uint32_t limit);

/* Addresses of many blocks, so that no check needs memory for them. */
enum { MANY = 16384 };
extern void* blocks[MANY];
void free_blocks(size_t count);

#endif
