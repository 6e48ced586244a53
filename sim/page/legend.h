#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// One entry of a chart's legend: a colour and, as plain text, the name of what has this colour.
struct LegendEntry {
  std::string colour, name;
};

// The legend of a chart as an HTML list.
std::string legend_markup(const std::vector<LegendEntry>& entries);

// A chart (markup), its legend (markup, "" for none) and a caption (plain text) as one <figure>, which is not split
// over two sheets in print.
std::string chart_markup(std::string_view chart, std::string_view legend, std::string_view caption);

}  // namespace orrery
