#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Splits a text into lines of at most `columns` columns, at blanks, or else within a long word after a mark such as -
// or /, if there is one.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// The text with every line that is wider than `columns` (0: no limit) split into several lines. The second and further
// lines begin below the word after the first gap of two blanks ("step time   5.32 s ..."), else two columns further in
// than the first. A line that holds a command ("...: orrery ...") is continued with backslashes, as a shell needs.
std::string fold(std::string_view text, std::size_t columns);

// A message as a program prints it: one line, in which words longer than any that a person would write (a pattern or a
// name of thousands of characters) have their middle left out.
std::string one_line(std::string_view message);

// The width in columns of the terminal that text goes to: the environment variable COLUMNS, else what the terminal
// reports; 0 where the text does not go to a terminal.
std::size_t terminal_columns(bool terminal);

}  // namespace orrery
