#pragma once

#include <string>
#include <string_view>

namespace orrery {

// What an option's figure may be: above 0 and at most `most`, of a unit that a bare figure has ("" = none).
struct FigureRange {
  const char* name;  // of the value in the help: "GiB", "DAYS"
  std::string_view unit;
  double most;
};

// Figures of options take the units and suffixes of a spec: "15T", "80 GB", "36 h". The text becomes the bare figure;
// what is returned is why it cannot, "" if it can.
std::string read_figure(std::string& text, const FigureRange& range);
std::string read_count(std::string& text, const FigureRange& range);  // a whole one

}  // namespace orrery
