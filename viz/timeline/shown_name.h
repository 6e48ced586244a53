#pragma once

#include <string>

#include "viz/timeline/timeline.h"

namespace orrery {

// The name of an op as bars and tables show it: of a kernel of another program, whose name is a C++ signature or
// mangled, the useful half (short_kernel_name()); else the name itself.
std::string shown_name(const Label& label);

}  // namespace orrery
