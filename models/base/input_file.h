#pragma once

#include <cstddef>
#include <string>

namespace orrery {

// The largest files of each kind, in bytes when inflated: well above any real one, well below a machine's memory.
inline constexpr std::size_t kMostSettings = std::size_t{4} << 20;  // specs, model configurations, prices
inline constexpr std::size_t kMostTables = std::size_t{64} << 20;   // profiles, loads, orders, published rows, views
inline constexpr std::size_t kMostMeasurements = std::size_t{256} << 20;  // logs and traces to import, reports
inline constexpr std::size_t kMostTrainingText = std::size_t{1} << 30;

// A whole file, inflated where it is compressed by gzip, whatever its name. The one way in which input is read. Throws
// Error "path: cannot be read: reason", "path: is larger than N MiB" or "path: is cut short".
std::string read_input(const std::string& path, std::size_t most_bytes);

}  // namespace orrery
