#include "sim/page/legend.h"

#include <fmt/format.h>

#include "sim/page/html.h"

namespace orrery {

std::string legend_markup(const std::vector<LegendEntry>& entries) {
  std::string items;
  for (const LegendEntry& e : entries)
    items +=
        element("li", fmt::format("<i class=\"swatch\" style=\"background:{}\"></i>{}", e.colour, escaped(e.name)));
  return items.empty() ? "" : element("ul", items, "class=\"legend\"") + '\n';
}

std::string chart_markup(std::string_view chart, std::string_view legend, std::string_view caption) {
  std::string content = '\n' + std::string(chart) + std::string(legend);
  if (!caption.empty()) content += element("figcaption", escaped(caption)) + '\n';
  return element("figure", content) + '\n';
}

}  // namespace orrery
