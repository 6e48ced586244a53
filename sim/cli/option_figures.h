#pragma once

#include <string>
#include <string_view>

namespace orrery {

// The range of numbers that a command-line option accepts: above 0, and at most `most`. unit: the unit of a number that
// is given without one ("": none).
struct FigureRange {
  const char* name;  // name of the value in the help text: "GiB", "DAYS"
  std::string_view unit;
  double most;
};

// Reads an option's value, which may have the units and suffixes that values in a spec may have: "15T", "80 GB", "36
// h". Replaces `text` by the plain number; returns "", or the reason why that is not possible.
std::string read_figure(std::string& text, const FigureRange& range);
// Reads an option's value as read_figure() does, with the same units and suffixes, but as a whole number.
std::string read_count(std::string& text, const FigureRange& range);

}  // namespace orrery
