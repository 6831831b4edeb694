// What is said when something is wrong, and the end of the program.
#pragma once

#include "config.h"

namespace ashlar {

enum class Fault : unsigned {
  none = 0,
  double_free = 1,       // a block lived here and is free now
  interior_pointer = 2,  // inside a block, not at its start
  foreign_pointer = 3,   // not in a block of ours
  never_allocated = 4,   // a block's place that was never handed out
  corrupted_header = 5,  // the words that describe this memory contradict each other
};

// Leaves the line that names the fault in last_message(). Does not allocate.
void note_fault(Fault fault, Address address);

// Notes the fault, writes the line to the program's error output and stops the program. The lock
// is held on entry and let go before the end, so that a handler of the abort may allocate: nothing
// has been changed yet when misuse is found.
[[noreturn]] void stop_on_fault(Fault fault, Address address);

const char* last_message();

}  // namespace ashlar
