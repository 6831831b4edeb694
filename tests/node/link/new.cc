// operator new and delete. REPLACE: the program's own, which must serve all forms. OOM: ends in one
// that can't be served.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <new>
#include <string>
#include <vector>

#include "ashlar.h"

static int own_news, own_deletes;
static bool fail_once;
#ifdef REPLACE
void* operator new(size_t size) {
  ++own_news;
  if (fail_once) {
    fail_once = false;
#ifdef __cpp_exceptions
    throw std::bad_alloc();
#endif
  }
  void* const block = malloc(size);
  if (block == nullptr) abort();
  return block;
}
void operator delete(void* block) noexcept {
  ++own_deletes;
  free(block);
}
#endif

static int handler_calls;
static void handler() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

// More than any memory holds beside the program. Not more than half of the address space natively:
// compilers refuse that themselves.
#if SIZE_MAX > 0xffffffff
static const volatile size_t too_much = size_t(1) << 46;
#else
static const volatile size_t too_much = 4294900000;
#endif

static int line_of_failure;
#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition) && line_of_failure == 0) line_of_failure = __LINE__; \
  } while (0)

struct alignas(256) Aligned {
  char bytes[300];
};

template <class T>
T* opaque(T* pointer) {
  T* volatile seen = pointer;
  return seen;
}

int main() {
  {
    std::vector<std::string> strings;
    for (int i = 0; i < 1000; ++i) strings.push_back(std::string(50, 'a'));
  }
  int* const one = opaque(new int(1));
  int* const many = opaque(new int[10]);
  int* const one_nothrow = opaque(new (std::nothrow) int(1));
  int* const many_nothrow = opaque(new (std::nothrow) int[10]);
  CHECK(one && many && one_nothrow && many_nothrow);
  Aligned* const aligned = opaque(new Aligned);
  Aligned* const aligned_many = opaque(new Aligned[3]);
  Aligned* const aligned_nothrow = opaque(new (std::nothrow) Aligned);
  for (const Aligned* each : {aligned, aligned_many, aligned_nothrow}) {
    CHECK(each != nullptr && reinterpret_cast<uintptr_t>(each) % 256 == 0);
  }
  delete one;
  delete[] many;
  delete one_nothrow;
  delete[] many_nothrow;
  delete aligned;
  delete[] aligned_many;
  delete aligned_nothrow;

  ashlar_stats_t stats;
  ashlar_stats(&stats);
  CHECK(stats.allocations > 1000);
  CHECK(ashlar_check() == 0);
#ifdef REPLACE
  CHECK(own_news > 1000 && own_deletes > 1000);
#ifdef THROWS_THROUGH
  fail_once = true;
  CHECK(opaque(new (std::nothrow) int[10]) == nullptr);
#endif
#else
  CHECK(own_news == 0 && own_deletes == 0 && !fail_once);
  CHECK(opaque(new (std::nothrow) char[too_much]) == nullptr);
  std::set_new_handler(handler);
  CHECK(opaque(new (std::nothrow) char[too_much]) == nullptr && handler_calls == 3);
#ifdef __cpp_exceptions
  bool caught = false;
  try {
    opaque(new char[too_much]);
  } catch (const std::bad_alloc&) {
    caught = true;
  }
  CHECK(caught);
  caught = false;
  try {
    opaque(static_cast<char*>(::operator new(too_much, std::align_val_t(256))));
  } catch (const std::bad_alloc&) {
    caught = true;
  }
  CHECK(caught);
#endif
#endif
  printf("new %s\n", line_of_failure == 0 ? "ok" : "fail");
  if (line_of_failure != 0) printf("line %d\n", line_of_failure);
#ifdef OOM
  fflush(stdout);
  opaque(new char[too_much]);
  puts("not reached");
#endif
  return line_of_failure != 0;
}
