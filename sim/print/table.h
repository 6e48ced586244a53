#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Align : unsigned char { left, right };

struct Column {
  std::string name;
  // unit, printed below the name; this line is left out if no column has a name, or none has a unit
  std::string unit;
  Align align = Align::right;
};

// A table for people to read, its columns two spaces apart. Cells are never wrapped or cut. A sample of print():
//   stage       peak  fits
//                GiB
//   stage 0    61.25  yes
struct Table {
  std::vector<Column> columns;
  // cells of each row, by column; a short row leaves its last cells empty
  std::vector<std::vector<std::string>> rows;
};

// The table as text, with a line break after every line and no blanks at line ends.
std::string print(const Table& table, std::string_view indent = "");

// The number of columns that a text takes in a terminal: its code points in UTF-8, each one column wide (true of the
// symbols printed here, Ψ × ≤ █, not of Chinese or of combining marks).
std::size_t width_of(std::string_view text);

// A share between 0 and 1 as a bar of at most `columns` blocks, rounded.
std::string bar(double share, std::size_t columns);

}  // namespace orrery
