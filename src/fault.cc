#include "fault.h"

namespace ashlar {
namespace {

constexpr size_t line_capacity = 64;
constinit char line[line_capacity];

constexpr const char* words_of(Fault fault) {
  switch (fault) {
    case Fault::double_free: return "double free of ";
    case Fault::interior_pointer: return "interior pointer ";
    case Fault::foreign_pointer: return "foreign pointer ";
    case Fault::never_allocated: return "never allocated ";
    case Fault::corrupted_header: return "corrupted header at ";
    case Fault::none: break;
  }
  return "";
}

constexpr size_t longest_words() {
  size_t longest = 0;
  for (unsigned i = 0; i <= unsigned(Fault::corrupted_header); ++i) {
    size_t length = 0;
    while (words_of(Fault(i))[length] != 0) ++length;
    longest = max(longest, length);
  }
  return longest;
}
static_assert(8 + longest_words() + 2 + 2 * word_bytes + 2 <= line_capacity);

size_t append_hex(size_t length, size_t value) {
  unsigned shift = word_bits;
  while (shift > 4 && (value >> (shift - 4)) == 0) shift -= 4;
  for (; shift > 0; shift -= 4) {
    const unsigned digit = unsigned(value >> (shift - 4)) & 15;
    line[length++] = char(digit < 10 ? '0' + digit : 'a' + digit - 10);
  }
  return length;
}

size_t write_line(Fault fault, Address address) {
  constexpr char prefix[] = "ashlar: ";
  __builtin_memcpy(line, prefix, sizeof prefix - 1);
  size_t length = sizeof prefix - 1;
  if constexpr (profile.numeric_messages) {
    line[length++] = char('0' + unsigned(fault));
    line[length++] = ' ';
  } else {
    for (const char* words = words_of(fault); *words != 0; ++words) line[length++] = *words;
  }
  line[length++] = '0';
  line[length++] = 'x';
  length = append_hex(length, address);
  line[length] = 0;
  return length;
}

}  // namespace

void note_fault(Fault fault, Address address) { (void)write_line(fault, address); }

slow_path void stop_on_fault(Fault fault, Address address) {
  const size_t length = write_line(fault, address);
  line[length] = '\n';
  os::write_error(line, length + 1);
  line[length] = 0;
  if constexpr (os::has_threads) os::unlock();
  os::stop();
}

const char* last_message() { return line; }

}  // namespace ashlar
