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

// Text in columns two spaces apart, for people. A sample of print():
//   stage       peak  fits
//                GiB
//   stage 0    61.25  yes
struct Table {
  std::vector<Column> columns;
  // cells of each row, by column; a short row leaves its last cells empty
  std::vector<std::vector<std::string>> rows;
};

// The table as text, with a line break after every line and no blanks at line ends. columns: the width of the terminal;
// 0: no limit. Where the table is wider, cells of text go over several lines; where that does not do either, the
// columns that have no room stand in further tables below, each with the first column again. No figure is cut or left
// out.
std::string print(const Table& table, std::string_view indent = "", std::size_t columns = 0);

// Columns that a terminal needs: code points of UTF-8, each one column wide (true of the symbols printed here, Ψ × ≤ █,
// not of Chinese or of combining marks), and none for the codes of a colour.
std::size_t width_of(std::string_view text);

// A share between 0 and 1 as a bar of at most `columns` blocks, rounded.
std::string bar(double share, std::size_t columns);

}  // namespace orrery
