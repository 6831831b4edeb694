/* The self-test: the C interface of Ashlar, tried from outside. Freestanding C without a libc, so
 * that the same source runs as a bare wasm module (js/selftest.js) and natively (main.c).
 *
 * Two tables. A check returns; each wants a fresh heap, but holds in a used one too. A misuse must
 * not return: it ends the program, and whoever runs it compares ashlar_last_message() with
 * selftest_misuse_expected(). Codes are the exit codes of programs: each its own, and it stays.
 */
#ifndef ASHLAR_SELFTEST_H
#define ASHLAR_SELFTEST_H

#include <stddef.h>
#include <stdint.h>

/* Instead of a code: neither passed nor failed, since it does not apply on this target or in this
 * profile; selftest_detail() says which. */
#define SELFTEST_SKIPPED (-1)

/* Exported from a wasm module that is linked with --export-dynamic. */
#define SELFTEST_API __attribute__((visibility("default")))

SELFTEST_API int selftest_count(void);
SELFTEST_API const char* selftest_name(int index);
SELFTEST_API int selftest_code(int index);

/* 0 when all is well, the check's own code when not, or SELFTEST_SKIPPED. */
SELFTEST_API int selftest_run(int index);

/* All checks one after the other in one heap: 0, or the code of the first that fails. */
SELFTEST_API int selftest_all(void);

/* What the last run found: the condition that did not hold, or why it was skipped; else "". */
SELFTEST_API const char* selftest_detail(void);

/* What random checks start from; 0 is taken for the default. */
SELFTEST_API void selftest_set_seed(uint32_t seed);
SELFTEST_API uint32_t selftest_seed(void);

SELFTEST_API int selftest_misuse_count(void);
SELFTEST_API const char* selftest_misuse_name(int index);
SELFTEST_API int selftest_misuse_code(int index);

/* Must not return; the code when it does, or SELFTEST_SKIPPED. For a fresh heap. */
SELFTEST_API int selftest_misuse_run(int index);

/* The line that the misuse must leave. Known once it began, and still there when it has ended. */
SELFTEST_API const char* selftest_misuse_expected(void);

#endif
