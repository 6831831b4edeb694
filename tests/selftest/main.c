// Runs the self-test natively: a line for each check, each in a process of its own; the exit code
// is that of the first check that failed. `--all`: instead, all checks in one heap, in this
// process.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ashlar.h"
#include "selftest.h"

enum { TEXT_BYTES = 256, SECONDS = 60 };

// What a child leaves for its parent.
static struct report {
  char detail[TEXT_BYTES];
  char expected[TEXT_BYTES];
  char message[TEXT_BYTES];
  int heap_is_damaged;
}* report;

static void leave(char* place, const char* text) { snprintf(place, TEXT_BYTES, "%s", text); }

// Runs while abort() waits: what wasm's exports answer after a trap.
static void on_abort(int signal) {
  (void)signal;
  leave(report->expected, selftest_misuse_expected());
  leave(report->message, ashlar_last_message());
  report->heap_is_damaged = ashlar_check();
}

static void run_child(int (*run)(int), int index, int error_output) {
  dup2(error_output, STDERR_FILENO);
  signal(SIGABRT, on_abort);
  alarm(SECONDS);
  const int code = run(index);
  leave(report->detail, selftest_detail());
  _exit(code == SELFTEST_SKIPPED ? 255 : code);
}

// Runs one check or misuse in a child; what it wrote on standard error comes back in
// `error_output`.
static int status_of(int (*run)(int), int index, char* error_output) {
  int ends[2];
  if (pipe(ends) != 0) exit(254);
  memset(report, 0, sizeof *report);
  fflush(stdout);
  const pid_t child = fork();
  if (child < 0) exit(254);
  if (child == 0) run_child(run, index, ends[1]);
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got; (got = read(ends[0], error_output + length, TEXT_BYTES - 1 - length)) > 0;) {
    length += (size_t)got;
  }
  error_output[length] = 0;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Prints the line of one check; its code when it failed.
static int tell(int code, const char* name, int skipped, const char* fault) {
  if (skipped) printf("skipped %d %s: %s\n", code, name, report->detail);
  if (!skipped && fault == NULL) printf("ok %d %s\n", code, name);
  if (!skipped && fault != NULL) printf("FAILED %d %s: %s\n", code, name, fault);
  return skipped || fault == NULL ? 0 : code;
}

static int is_skipped(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 255; }

static int run_check(int index) {
  char error_output[TEXT_BYTES];
  const int status = status_of(selftest_run, index, error_output);
  const char* fault = report->detail;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) fault = NULL;
  if (WIFSIGNALED(status))
    fault = error_output[0] != 0 ? error_output : strsignal(WTERMSIG(status));
  return tell(selftest_code(index), selftest_name(index), is_skipped(status), fault);
}

static int run_misuse(int index) {
  char error_output[TEXT_BYTES];
  char line[TEXT_BYTES + 1];
  const int status = status_of(selftest_misuse_run, index, error_output);
  snprintf(line, sizeof line, "%s\n", report->expected);
  const char* fault = NULL;
  if (report->heap_is_damaged) fault = "the heap was changed before the end";
  if (strcmp(error_output, line) != 0) fault = "another line on standard error";
  if (strcmp(report->message, report->expected) != 0) fault = "another message";
  if (report->expected[0] == 0) fault = "the misuse could not be made";
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) fault = "no abort";
  return tell(selftest_misuse_code(index), selftest_misuse_name(index), is_skipped(status), fault);
}

int main(int count, char** arguments) {
  const char* const seed = getenv("ASHLAR_SEED");
  if (seed != NULL) selftest_set_seed((uint32_t)strtoul(seed, NULL, 0));
  if (count > 1 && strcmp(arguments[1], "--all") == 0) {
    const int code = selftest_all();
    printf("%s\n", code == 0 ? "ok" : selftest_detail());
    return code;
  }
  report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (report == MAP_FAILED) return 254;
  printf("%s, seed %u\n", ashlar_version(), (unsigned)selftest_seed());
  int first = 0;
  for (int i = 0; i < selftest_count(); ++i) {
    const int code = run_check(i);
    if (first == 0) first = code;
  }
  for (int i = 0; i < selftest_misuse_count(); ++i) {
    const int code = run_misuse(i);
    if (first == 0) first = code;
  }
  return first;
}
