// Questions and wishes that programs put to a malloc. Sizes are those of ashlar_stats().
#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>

#include "ashlar.h"
#include "os.h"
#include "override_names.h"

namespace {

ashlar_stats_t current_stats() {
  ashlar_stats_t stats;
  ashlar_stats(&stats);
  return stats;
}

// Fields of int or of size_t. A number that does not fit stays the largest that does.
template <class Field>
void set_field(Field& field, size_t value) {
  constexpr size_t largest = Field(-1) < Field(0) ? size_t{INT_MAX} : SIZE_MAX;
  field = static_cast<Field>(value < largest ? value : largest);
}

template <class Info>
Info info_of(const ashlar_stats_t& stats) {
  Info info{};
  set_field(info.arena, stats.committed_bytes);
  set_field(info.usmblks, stats.committed_bytes);  // the most ever held: memory is never given back
  set_field(info.uordblks, stats.live_bytes);
  set_field(info.fordblks, stats.free_bytes);
  set_field(info.ordblks, stats.free_blocks);
  return info;
}

void write_line(const char* words, uint64_t number) {
  char line[80];
  size_t length = 0;
  for (; *words != 0; ++words) line[length++] = *words;
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) line[length++] = digits[--count];
  line[length++] = '\n';
  line[length] = 0;
  ashlar::os::write_error(line, length);
}

}  // namespace

ASHLAR_EXTRA_NAME struct mallinfo mallinfo() { return info_of<struct mallinfo>(current_stats()); }

// Nothing can be set: 0, no success.
ASHLAR_EXTRA_NAME int mallopt(int, int) { return 0; }

// Nothing was given back to the system: linear memory can't shrink, and natively it is kept.
ASHLAR_EXTRA_NAME int malloc_trim(size_t) { return 0; }

ASHLAR_EXTRA_NAME void malloc_stats() {
  const ashlar_stats_t stats = current_stats();
  write_line("max system bytes = ", stats.committed_bytes);
  write_line("system bytes     = ", stats.committed_bytes);
  write_line("in use bytes     = ", stats.live_bytes);
}

#if defined(__EMSCRIPTEN__)

// Asked by the OS layer before it takes memory.
extern "C" size_t ashlar_footprint_limit;

ASHLAR_EXTRA_NAME size_t malloc_footprint() { return current_stats().committed_bytes; }

// It never shrinks.
ASHLAR_EXTRA_NAME size_t malloc_max_footprint() { return current_stats().committed_bytes; }

ASHLAR_EXTRA_NAME size_t malloc_footprint_limit() { return ashlar_footprint_limit; }

ASHLAR_EXTRA_NAME size_t malloc_set_footprint_limit(size_t bytes) {
  ashlar_footprint_limit = bytes;
  return bytes;
}

#else

ASHLAR_EXTRA_NAME int malloc_info(int options, FILE* stream) {
  if (options != 0) {
    ashlar::os::set_invalid_argument();
    return -1;
  }
  const ashlar_stats_t stats = current_stats();
  const int written = fprintf(stream,
                              "<malloc version=\"%s\">\n"
                              "<system type=\"current\" size=\"%zu\"/>\n"
                              "<system type=\"max\" size=\"%zu\"/>\n"
                              "<total type=\"live\" count=\"%zu\" size=\"%zu\"/>\n"
                              "</malloc>\n",
                              ashlar_version(), stats.committed_bytes, stats.committed_bytes,
                              stats.live_blocks, stats.live_bytes);
  return written < 0 ? -1 : 0;
}

ASHLAR_EXTRA_NAME struct mallinfo2 mallinfo2() {
  return info_of<struct mallinfo2>(current_stats());
}

#endif
