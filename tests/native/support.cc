#include "support.h"

#include <ashlar.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace test {
namespace {

// A test that hangs is a failed test.
constexpr unsigned child_seconds = 150;

void write_text(const char* text) { (void)!write(2, text, strlen(text)); }

void tell_last_message(int) {
  write_text("last message: ");
  write_text(ashlar_last_message());
  write_text("\n");
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
  }
  return status;
}

}  // namespace

void run_in_child(const std::function<void()>& body) {
  fflush(nullptr);
  pid_t const child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(child_seconds);
    body();
    fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int const status = wait_for(child);
  if (WIFSIGNALED(status))
    ADD_FAILURE() << "the child died of signal " << WTERMSIG(status);
  else
    EXPECT_EQ(WEXITSTATUS(status), 0) << "the child failed";
}

Ending end_of(const std::function<void()>& body) {
  Ending ending;
  int pipe_ends[2];
  fflush(nullptr);
  if (pipe(pipe_ends) != 0) abort();
  pid_t const child = fork();
  if (child < 0) abort();
  if (child == 0) {
    alarm(child_seconds);
    dup2(pipe_ends[1], 2);
    close(pipe_ends[0]);
    signal(SIGABRT, tell_last_message);
    body();
    _exit(0);
  }
  close(pipe_ends[1]);
  char buffer[4096];
  for (;;) {
    ssize_t const got = read(pipe_ends[0], buffer, sizeof buffer);
    if (got <= 0) break;
    ending.error_output.append(buffer, static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  int const status = wait_for(child);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ending.exit_code = WEXITSTATUS(status);
  return ending;
}

uint64_t printed_seed() {
  uint64_t seed = 0;
  if (const char* const given = getenv("ASHLAR_SEED")) {
    seed = strtoull(given, nullptr, 0);
  } else {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = (static_cast<uint64_t>(now.tv_sec) << 20) ^ static_cast<uint64_t>(now.tv_nsec);
  }
  printf("ASHLAR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

void fill(void* block, size_t size, uint64_t tag) {
  Random bytes(tag);
  unsigned char* const out = static_cast<unsigned char*>(block);
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t const word = bytes.next();
    memcpy(out + i, &word, 8);
  }
  for (; i < size; ++i) out[i] = static_cast<unsigned char>(bytes.next());
}

bool filled(const void* block, size_t size, uint64_t tag) {
  Random bytes(tag);
  const unsigned char* const in = static_cast<const unsigned char*>(block);
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t const word = bytes.next();
    if (memcmp(in + i, &word, 8) != 0) return false;
  }
  for (; i < size; ++i) {
    if (in[i] != static_cast<unsigned char>(bytes.next())) return false;
  }
  return true;
}

bool all_zero(const void* block, size_t size) {
  const unsigned char* const in = static_cast<const unsigned char*>(block);
  return size == 0 || (in[0] == 0 && memcmp(in, in + 1, size - 1) == 0);
}

size_t opaque(size_t value) {
  size_t volatile hidden = value;
  return hidden;
}

void* opaque(void* pointer) {
  void* volatile hidden = pointer;
  return hidden;
}

}  // namespace test
