#include "sim/print/section.h"

namespace orrery {

std::string text_of(const Section& section, const Style& style) {
  constexpr std::string_view kIndented = "  ";
  if (section.is_empty()) return "";
  std::string text = section.title.empty() ? "" : heading(section.title, style) + '\n';
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text.append(kIndented).append(line) += '\n';
  };
  add(section.lines);
  if (!section.table.rows.empty()) text += print(section.table, kIndented, style.columns);
  add(section.after);
  return text;
}

}  // namespace orrery
