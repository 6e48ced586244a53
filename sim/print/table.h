#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

enum class Align : unsigned char { left, right };

struct Column {
  std::string name;
  std::string unit;  // printed below the name; the line of names, or of units, is left out when no column has one
  Align align = Align::right;
};

// Text in columns two spaces apart, for people. It never wraps or cuts a cell. A sample of print():
//   stage       peak  fits
//                GiB
//   stage 0    61.25  yes
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // (row, column); a short row leaves its last cells empty
};

// The table as text, with a line break after every line and no blanks at line ends.
std::string print(const Table& table, std::string_view indent = "");

// Columns that a terminal needs: code points of UTF-8, each one column wide (true of the symbols printed here, Ψ × ≤ █,
// not of Chinese or of combining marks).
std::size_t width_of(std::string_view text);

// A share between 0 and 1 as a bar of at most `columns` blocks, rounded.
std::string bar(double share, std::size_t columns);

}  // namespace orrery
