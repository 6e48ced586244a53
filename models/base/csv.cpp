#include "models/base/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/sensible.h"

namespace orrery {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // U+FEFF in UTF-8 (RFC 3629, section 6)
constexpr double kMostWhole = 0x1p53;  // doubles up to this size hold every whole number (IEEE 754 binary64)

// A text from a file as a message quotes it.
std::string quoted(std::string_view text) {
  return printable(std::string(first_characters(text, sensible::kLongestWord)));
}

template <class T>
std::optional<T> number_of(const std::string& text) {
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end) return std::nullopt;
  return value;
}

void skip_blanks(std::string_view& line) { line.remove_prefix(std::min(line.find_first_not_of(' '), line.size())); }

// Takes a cell in double quotes from the line, with both quotes, and returns its text.
std::string take_quoted(std::string_view& line) {
  std::string cell;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"' && line.substr(i + 1, 1) != "\"") {
      line.remove_prefix(i + 1);
      return cell;
    }
    if (line[i] == '"') ++i;
    cell += line[i];
  }
  throw Error(fmt::format("the cell {} has no closing quote on its line", quoted(line)));
}

std::vector<std::string> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells;
  while (true) {
    skip_blanks(line);
    if (line.starts_with('"')) {
      cells.push_back(take_quoted(line));
      skip_blanks(line);
      if (!line.empty() && line.front() != separator)
        throw Error(fmt::format("{} follows the closing quote of a cell", quoted(line)));
    } else {
      std::string_view cell = line.substr(0, line.find(separator));
      line.remove_prefix(cell.size());
      cell = cell.substr(0, cell.find_last_not_of(' ') + 1);
      cells.emplace_back(cell);
    }
    if (!is_printable(cells.back())) throw Error(fmt::format("cell {} is no printable text in UTF-8", cells.size()));
    if (line.empty()) return cells;
    line.remove_prefix(1);
  }
}

std::vector<std::string> columns_of(std::string_view header, char separator) {
  std::vector<std::string> columns = cells_of(header, separator), sorted = columns;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) throw Error(fmt::format("has two columns '{}'; leave out one of them", quoted(*twice)));
  return columns;
}

}  // namespace

CsvRow::CsvRow(const std::vector<std::string>& columns, std::vector<std::string> cells)
    : columns_(columns), cells_(std::move(cells)) {
  if (cells_.size() != columns_.size())
    throw Error(fmt::format("has {} cells under {} columns", cells_.size(), columns_.size()));
}

bool CsvRow::has(std::string_view column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

const std::string& CsvRow::text(std::string_view column) const {
  const auto at = std::find(columns_.begin(), columns_.end(), column);
  if (at == columns_.end()) throw Error(fmt::format("has no column {}", column));
  return cells_[static_cast<std::size_t>(at - columns_.begin())];
}

double CsvRow::number(std::string_view column, double least, double most) const {
  const std::string& cell = text(column);
  const std::optional<double> value = number_of<double>(cell);
  if (!value || !std::isfinite(*value)) throw Error(fmt::format("{}: '{}' is no number", column, quoted(cell)));
  if (*value < least || *value > most)
    throw Error(fmt::format("{}: {} is not between {} and {}", column, quoted(cell), least, most));
  return *value;
}

std::int64_t CsvRow::whole(std::string_view column, std::int64_t least, std::int64_t most) const {
  const std::string& cell = text(column);
  std::optional<std::int64_t> value = number_of<std::int64_t>(cell);
  if (!value) {
    const std::optional<double> real = number_of<double>(cell);
    if (real && std::abs(*real) <= kMostWhole && std::trunc(*real) == *real) value = static_cast<std::int64_t>(*real);
  }
  if (!value) throw Error(fmt::format("{}: '{}' is no whole number", column, quoted(cell)));
  if (*value < least || *value > most)
    throw Error(fmt::format("{}: {} is not between {} and {}", column, quoted(cell), least, most));
  return *value;
}

void read_csv(const std::string& path, std::string_view text, const CsvReaders& readers) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> columns;
  char separator = ',';
  for (std::int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    try {
      if (columns.empty()) {
        separator = line.find('\t') == std::string_view::npos ? ',' : '\t';
        columns = columns_of(line, separator);
        if (readers.header) readers.header(columns);
      } else {
        readers.row(CsvRow(columns, cells_of(line, separator)));
      }
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
}

}  // namespace orrery
