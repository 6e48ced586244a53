#pragma once

#include <string>

#include <fmt/format.h>

#include "models/base/data.h"
#include "models/base/version.h"

namespace orrery {

// The commit from which this program was built: twelve hexadecimal digits, with a plus sign if files had been changed;
// "unknown" if it was built without git. cmake/commit.cmake writes the value at every build.
extern const char* const kCommit;

// The program's version as one line, for example "orrery 0.2.0 (commit 1f0c4d2ab93e, data 6b1d03c7f28a)".
inline std::string version_line(const std::string& program) {
  return fmt::format("{} {} (commit {}, data {})", program, kVersion, kCommit, data_version());
}

}  // namespace orrery
