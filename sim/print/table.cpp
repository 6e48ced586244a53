#include "sim/print/table.h"

#include <algorithm>
#include <numeric>

#include "sim/print/fold.h"

namespace orrery {
namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kGap = 2;        // blanks between columns
constexpr std::size_t kNarrow = 14;    // least width in characters to which columns of text are narrowed
constexpr unsigned char kEscape = 27;  // escape character, which begins a colour's code

std::vector<std::size_t> widths_of(const std::vector<Cells>& lines, std::size_t columns) {
  std::vector<std::size_t> widths(columns);
  for (const Cells& cells : lines) {
    for (std::size_t i = 0; i < std::min(columns, cells.size()); ++i)
      widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  return widths;
}

std::size_t total(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
         kGap * (widths.empty() ? 0 : widths.size() - 1);
}

bool says_something(const Cells& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const std::string& cell) { return !cell.empty(); });
}

// One row of a table as text; it has as many lines as the cell that needs most.
std::string row_of(const Cells& cells, const Table& table, const std::vector<std::size_t>& widths,
                   std::string_view indent) {
  std::vector<Cells> parts;
  std::size_t lines = 1;
  for (std::size_t i = 0; i < std::min(widths.size(), cells.size()); ++i) {
    parts.push_back(width_of(cells[i]) > widths[i] ? wrapped(cells[i], widths[i]) : Cells{cells[i]});
    lines = std::max(lines, parts.back().size());
  }
  std::string text;
  for (std::size_t n = 0; n < lines; ++n) {
    std::string line(indent);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string cell = n < parts[i].size() ? parts[i][n] : "";
      const std::string blanks(widths[i] - std::min(widths[i], width_of(cell)), ' ');
      if (i > 0) line.append(kGap, ' ');
      line += table.columns[i].align == Align::right ? blanks + cell : cell + blanks;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

// Makes columns of text narrower, always the widest one, until the table is at most `room` columns wide; returns
// whether it is.
bool narrow(const Table& table, std::vector<std::size_t>& widths, std::size_t room) {
  while (total(widths) > room) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool text = table.columns[i].align == Align::left && widths[i] > kNarrow;
      if (text && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) return false;
    --widths[widest];
  }
  return true;
}

Cells chosen(const Cells& cells, const std::vector<std::size_t>& columns) {
  Cells some;
  for (const std::size_t i : columns) some.push_back(i < cells.size() ? cells[i] : "");
  while (!some.empty() && some.back().empty()) some.pop_back();
  return some;
}

// Divides a table's columns into groups that fit side by side in `room`; the first column is in every group.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<std::size_t>& widths, std::size_t room) {
  std::vector<std::vector<std::size_t>> groups;
  std::size_t width = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    if (groups.empty() || width + kGap + widths[i] > room) {
      groups.push_back({0});
      width = widths[0];
    }
    groups.back().push_back(i);
    width += kGap + widths[i];
  }
  return groups;
}

std::string apart(const Table& table, const std::vector<std::size_t>& natural, std::string_view indent,
                  std::size_t columns) {
  const std::size_t room = columns - indent.size(), most = (room - kGap) / 2;
  std::vector<std::size_t> widths = natural;
  for (std::size_t& width : widths) width = std::min(width, most);
  std::string text;
  for (const std::vector<std::size_t>& group : groups_of(widths, room)) {
    Table part;
    for (const std::size_t i : group) part.columns.push_back(table.columns[i]);
    for (const Cells& cells : table.rows) part.rows.push_back(chosen(cells, group));
    text += (text.empty() ? "" : "\n") + print(part, indent, columns);
  }
  return text;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  bool code = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == kEscape) code = true;
    if (!code && (byte & 0xC0U) != 0x80U) ++width;
    if (c == 'm') code = false;
  }
  return width;
}

std::string bar(double share, std::size_t columns) {
  const double blocks = std::clamp(share, 0.0, 1.0) * static_cast<double>(columns);
  std::string text;
  for (auto i = static_cast<std::size_t>(blocks + 0.5); i > 0; --i) text += "█";
  return text;
}

std::string print(const Table& table, std::string_view indent, std::size_t columns) {
  Cells names, units;
  for (const Column& column : table.columns) {
    names.push_back(column.name);
    units.push_back(column.unit);
  }
  std::vector<Cells> lines;
  if (says_something(names)) lines.push_back(names);
  if (says_something(units)) lines.push_back(units);
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<std::size_t> widths = widths_of(lines, table.columns.size());
  const std::vector<std::size_t> natural = widths;
  if (columns > 0 && !narrow(table, widths, columns - indent.size())) {
    if (table.columns.size() > 2) return apart(table, natural, indent, columns);
    for (std::size_t& width : widths) width = std::min(width, (columns - indent.size() - kGap) / 2);
  }
  std::string text;
  for (const Cells& cells : lines) text += row_of(cells, table, widths, indent);
  return text;
}

}  // namespace orrery
