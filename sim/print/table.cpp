#include "sim/print/table.h"

#include <algorithm>

namespace orrery {
namespace {

using Cells = std::vector<std::string>;

std::vector<std::size_t> widths_of(const std::vector<Cells>& lines, std::size_t columns) {
  std::vector<std::size_t> widths(columns);
  for (const Cells& cells : lines) {
    for (std::size_t i = 0; i < std::min(columns, cells.size()); ++i)
      widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  return widths;
}

bool says_something(const Cells& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const std::string& cell) { return !cell.empty(); });
}

std::string line_of(const Cells& cells, const Table& table, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < std::min(widths.size(), cells.size()); ++i) {
    if (i > 0) line += "  ";
    const std::string blanks(widths[i] - width_of(cells[i]), ' ');
    line += table.columns[i].align == Align::right ? blanks + cells[i] : cells[i] + blanks;
  }
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string bar(double share, std::size_t columns) {
  const double blocks = std::clamp(share, 0.0, 1.0) * static_cast<double>(columns);
  std::string text;
  for (auto i = static_cast<std::size_t>(blocks + 0.5); i > 0; --i) text += "█";
  return text;
}

std::string print(const Table& table, std::string_view indent) {
  Cells names, units;
  for (const Column& column : table.columns) {
    names.push_back(column.name);
    units.push_back(column.unit);
  }
  std::vector<Cells> lines;
  if (says_something(names)) lines.push_back(names);
  if (says_something(units)) lines.push_back(units);
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  const std::vector<std::size_t> widths = widths_of(lines, table.columns.size());
  std::string text;
  for (const Cells& cells : lines) {
    text += indent;
    text += line_of(cells, table, widths) + '\n';
  }
  return text;
}

}  // namespace orrery
