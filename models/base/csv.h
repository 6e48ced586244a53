#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A line of a table, whose cells are found by the names of the columns. The functions throw Error, which names the
// column, for a column that the table does not have and for a cell that is not what is asked for.
class CsvRow {
 public:
  CsvRow(const std::vector<std::string>& columns, std::vector<std::string> cells);
  bool has(std::string_view column) const;
  const std::string& text(std::string_view column) const;
  double number(std::string_view column, double least, double most) const;
  // A whole number; it may be written with a fraction of zero ("3.0"), as programs do for columns with empty cells.
  std::int64_t whole(std::string_view column, std::int64_t least, std::int64_t most) const;

 private:
  const std::vector<std::string>& columns_;
  std::vector<std::string> cells_;
};

struct CsvReaders {
  std::function<void(const std::vector<std::string>&)> header;  // called once, with the names of the columns
  std::function<void(const CsvRow&)> row;
};

// Reads a CSV table whose first line names the columns. Cells are separated by tabs if the header holds one, and by
// commas otherwise. A cell in double quotes may hold separators, and quotes that are doubled (RFC 4180), but no line
// breaks. Blanks around cells, blank lines, and a byte-order mark before the header do not count. Throws Error
// "path:line: what" for a line that is no printable text or has too few or too many cells and for columns of one name;
// an Error that a reader throws is thrown again with "path:line: " put before its text.
void read_csv(const std::string& path, std::string_view text, const CsvReaders& readers);

}  // namespace orrery
