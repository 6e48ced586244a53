#pragma once

#include <cstddef>
#include <string>

namespace orrery {

// Size limits by type of input file, in bytes after decompression: well above any real file, well below a machine's
// memory.
inline constexpr std::size_t kMostSettings = std::size_t{4} << 20;  // specs, model configurations, prices
// Profiles, expert loads, schedules, published results, saved views
inline constexpr std::size_t kMostTables = std::size_t{64} << 20;
inline constexpr std::size_t kMostMeasurements = std::size_t{256} << 20;  // logs and traces to import, reports
inline constexpr std::size_t kMostTrainingText = std::size_t{1} << 30;    // a file of text to train on

// Reads a complete file, and decompresses it if its contents are gzipped, whatever its name. All input is read through
// this function. Throws Error "path: cannot be read: reason", "path: is larger than N MiB" or "path: is cut short".
std::string read_input(const std::string& path, std::size_t most_bytes);

}  // namespace orrery
