#pragma once

#include <stdexcept>
#include <string>

namespace orrery {

// An error in the user's input, with the one line that the user reads: "where: what, and what to do", where being
// file:line or --option. Programs print it and exit with code. Broken invariants are asserts, not Errors.
struct Error : std::runtime_error {
  explicit Error(const std::string& line, int code = 2) : std::runtime_error(line), exit_code(code) {}
  int exit_code;
};

}  // namespace orrery
