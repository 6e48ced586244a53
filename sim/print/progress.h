#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/print/text.h"

namespace orrery {

// The output of a command for stdout, printed in one piece when the command has succeeded, and the exit status.
// Commands write nothing to the terminal themselves; long commands report through `Progress`, one line at a time.
// Commands throw Error for bad input.
struct Outcome {
  std::string text;
  int status = 0;
  std::string log{};      // a line for stderr, for output that differs from run to run
  double spread = 0;      // spread of the measurements of a calibration: quartile distance over median, by time
  bool verbatim = false;  // the text is for a program: its lines are not folded to the terminal's width
};
using Progress = std::function<void(std::string_view)>;

// Options that all commands share. threads: number of worker threads; results do not depend on it.
struct Common {
  Style style;
  unsigned threads = 1;
  bool json = false;
  Progress progress;
};

}  // namespace orrery
