#pragma once

namespace orrery {

// The version of the programs, their report and the package; CMakeLists.txt reads it from here. CONTRIBUTING.md says
// when which of the three numbers grows.
inline constexpr const char* kVersion = "0.2.0";

}  // namespace orrery
