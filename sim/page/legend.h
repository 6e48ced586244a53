#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A colour and what it stands for, plain text.
struct LegendEntry {
  std::string colour, name;
};

// The legend of a chart as a list below it.
std::string legend_markup(const std::vector<LegendEntry>& entries);

// A chart (markup), its legend (markup, "" for none) and a line about it (plain text) as one figure, which paper does
// not cut in two.
std::string chart_markup(std::string_view chart, std::string_view legend, std::string_view caption);

}  // namespace orrery
