#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/print/text.h"

namespace orrery {

// The result of a command: what it prints on stdout, in one piece after it has succeeded, and the exit status. Commands
// write nothing to the terminal themselves; long commands report through `Progress`, one line at a time. Commands throw
// Error for bad input.
struct Outcome {
  std::string text;
  int status = 0;
  std::string log{};  // text for stderr, for example on times, which differs from run to run
  // For a calibration: how much measurements scatter. It is the mean over the measurements, weighted by time, of the
  // interquartile range over the median.
  double spread = 0;
  bool verbatim = false;  // whether the text is read by a program, so that its lines are not folded
  std::string page{};     // the HTML page if --html asks for one, else ""
};
using Progress = std::function<void(std::string_view)>;

// Options that all commands have. threads: number of worker threads; results do not depend on it.
struct Common {
  Style style;
  unsigned threads = 1;
  bool json = false;
  Progress progress;
  // Whether the command also makes a page (--html), and what the page says of its origin: the command line and the
  // version of the program.
  bool page = false;
  std::string command{}, version{};
};

}  // namespace orrery
