#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Text over lines of at most so many columns, broken at blanks, or else within a long word, behind a mark such as - / ,
// where there is one.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// The text with every line that is wider than `columns` (0: no limit) over several lines. The later ones begin below
// the first word behind a gap of two blanks ("step time   5.32 s ..."), or two columns further in than the line. A
// command (": orrery ...") is continued by backslashes, as a shell reads it.
std::string fold(std::string_view text, std::size_t columns);

// The width of the terminal that text goes to: the environment's COLUMNS, else what the terminal says; 0 where it is no
// terminal.
std::size_t terminal_columns(bool terminal);

}  // namespace orrery
