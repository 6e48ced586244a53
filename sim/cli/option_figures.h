#pragma once

#include <string>
#include <string_view>

namespace orrery {

// The range of an option's figure: above 0 and at most `most`, in the unit of a bare figure ("" = none).
struct FigureRange {
  const char* name;  // name of the value in the help: "GiB", "DAYS"
  std::string_view unit;
  double most;
};

// Reads the figure of an option, which takes the units and suffixes of a spec: "15T", "80 GB", "36 h". The text becomes
// the bare figure; the result is why it cannot, "" if it can.
std::string read_figure(std::string& text, const FigureRange& range);
std::string read_count(std::string& text, const FigureRange& range);  // a whole number

}  // namespace orrery
