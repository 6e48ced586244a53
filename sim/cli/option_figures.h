#pragma once

#include <string>
#include <string_view>

namespace orrery {

// The range of a command-line option's value: above 0 and at most `most`, in the unit of a number without one ("" =
// none).
struct FigureRange {
  const char* name;  // name of the value in the help: "GiB", "DAYS"
  std::string_view unit;
  double most;
};

// Reads an option's value, which may have the units and suffixes of a spec: "15T", "80 GB", "36 h". `text` is replaced
// by the plain number; returns why that is not possible, "" if it is.
std::string read_figure(std::string& text, const FigureRange& range);
std::string read_count(std::string& text, const FigureRange& range);  // a whole number

}  // namespace orrery
