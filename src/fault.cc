#include "fault.h"

namespace ashlar {
namespace {

constexpr size_t line_capacity = 64;
constinit char line[line_capacity];

// By the number of the fault. No pointers: data without any can be placed at every address.
constexpr char words[][21] = {
    "",
    "double free of ",
    "interior pointer ",
    "foreign pointer ",
    "never allocated ",
    "corrupted header at ",
};
static_assert(sizeof words / sizeof words[0] == unsigned(Fault::corrupted_header) + 1);
// The prefix, the words, "0x" and the digits, a newline and the end.
static_assert(8 + sizeof words[0] + 2 + 2 * word_bytes + 2 <= line_capacity);

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
    for (const char* c = words[unsigned(fault)]; *c != 0; ++c) line[length++] = *c;
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
