#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Align : unsigned char { left, right };

struct Column {
  std::string name;
  // unit of the column, printed in a line below the columns' names; a line without any name or unit is left out
  std::string unit;
  Align align = Align::right;
};

// A table of texts for people, with columns two spaces apart. A sample of what print() makes of it:
//   stage       peak  fits
//                GiB
//   stage 0    61.25  yes
struct Table {
  std::vector<Column> columns;
  // texts of the cells as [row][column]; cells that are missing at the end of a row are empty
  std::vector<std::vector<std::string>> rows;
};

// The table as text, with a line break after every line and no blanks at line ends. columns: width of the terminal; 0:
// no limit. If the table is wider, text in cells is split into several lines; if that is not enough, the columns that
// do not fit follow in further tables below, each beginning with the first column again. No figure is cut or left out.
std::string print(const Table& table, std::string_view indent = "", std::size_t columns = 0);

// The number of terminal columns that a text needs: one for each code point of UTF-8 (right for the symbols printed
// here, Ψ × ≤ █, not for Chinese or combining marks), and none for colour codes.
std::size_t width_of(std::string_view text);

// A bar of at most `columns` block characters for a share between 0 and 1, rounded.
std::string bar(double share, std::size_t columns);

}  // namespace orrery
