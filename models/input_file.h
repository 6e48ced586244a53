#pragma once

#include <string>

namespace orrery {

// A whole file, inflated where it is compressed by gzip, whatever its name. Throws Error "path: cannot be read: reason"
// or "path: is cut short".
std::string read_input(const std::string& path);

}  // namespace orrery
