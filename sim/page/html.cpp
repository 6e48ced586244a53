#include "sim/page/html.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

namespace orrery {
namespace {

std::string head_of(const Table& table) {
  const auto named = [](const Column& c) { return !c.name.empty() || !c.unit.empty(); };
  if (std::none_of(table.columns.begin(), table.columns.end(), named)) return "";
  std::string cells;
  for (const Column& c : table.columns) {
    const std::string unit = c.unit.empty() ? "" : element("small", escaped(c.unit));
    cells +=
        element("th", escaped(c.name) + unit, c.align == Align::right ? "class=\"n\" scope=\"col\"" : "scope=\"col\"");
  }
  return element("thead", element("tr", cells));
}

}  // namespace

std::string element(std::string_view name, std::string_view content, std::string_view attributes) {
  return fmt::format("<{0}{1}{2}>{3}</{0}>", name, attributes.empty() ? "" : " ", attributes, content);
}

std::string paragraph(std::string_view text, std::string_view attributes) {
  return element("p", escaped(text), attributes) + '\n';
}

std::string figure(std::string_view id, double value, std::string_view text) {
  return element("data", escaped(text), fmt::format("id=\"{}\" value=\"{}\"", escaped(id), value));
}

std::string table_markup(const Table& table, const std::vector<std::string>& swatches, const CellMarkup& cell) {
  if (table.rows.empty()) return "";
  std::string rows;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::string cells;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const bool there = i < table.rows[r].size();
      std::string content = cell ? cell(r, i) : "";
      if (content.empty() && there) content = escaped(table.rows[r][i]);
      if (i == 0 && r < swatches.size() && !swatches[r].empty())
        content = fmt::format("<i class=\"swatch\" style=\"background:{}\"></i>{}", swatches[r], content);
      cells += element("td", content, table.columns[i].align == Align::right ? "class=\"n\"" : "");
    }
    rows += element("tr", cells) + '\n';
  }
  return "<div class=\"wide\">" + element("table", head_of(table) + '\n' + element("tbody", rows)) + "</div>\n";
}

std::string lines_markup(const std::vector<std::string>& lines) {
  std::string markup;
  for (const std::string& line : lines) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    markup += paragraph(std::string_view(line).substr(begin), begin > 1 ? "class=\"in\"" : "");
  }
  return markup;
}

std::string section_markup(const Section& section) {
  if (section.is_empty()) return "";
  // a copy, because a section's title begins with a small letter in the terminal and with a capital on the page
  std::string title = section.title;
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return part(title, lines_markup(section.lines) + table_markup(section.table) + lines_markup(section.after));
}

std::string part(std::string_view title, std::string_view content, std::string_view attributes) {
  const std::string head = title.empty() ? "" : element("h2", escaped(title)) + '\n';
  return element("section", '\n' + head + std::string(content), attributes) + '\n';
}

std::string folded(std::string_view title, std::string_view content, bool open) {
  return element("details", element("summary", escaped(title)) + '\n' + std::string(content),
                 open ? "open=\"open\"" : "") +
         '\n';
}

}  // namespace orrery
