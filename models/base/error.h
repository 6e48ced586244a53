#pragma once

#include <stdexcept>
#include <string>

namespace orrery {

// An error in the user's input. Its text is one line, "where: what is wrong, and what to do", in which `where` is
// file:line or --option. Programs print the line and exit with exit_code. Broken invariants of the code are asserts,
// not Errors.
struct Error : std::runtime_error {
  explicit Error(const std::string& line, int code = 2) : std::runtime_error(line), exit_code(code) {}
  int exit_code;
};

}  // namespace orrery
