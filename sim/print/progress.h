#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/print/text.h"

namespace orrery {

// What a command prints on stdout, all at once when it has succeeded, and the exit status. Commands write nothing to
// the terminal themselves; those with much to do tell `Progress` one line at a time. They throw Error for bad input.
struct Outcome {
  std::string text;
  int status = 0;
  std::string log{};  // a line for stderr: what is not the same every time
  double spread = 0;  // of what a calibration measured: quartile distance over median, by time
};
using Progress = std::function<void(std::string_view)>;

// What the commands share. threads: of workers; results do not depend on it.
struct Common {
  Style style;
  unsigned threads = 1;
  bool json = false;
  Progress progress;
};

}  // namespace orrery
