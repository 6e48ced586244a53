#pragma once

#include <cstddef>
#include <string>

namespace orrery {

// Size limits by type of input file, in bytes after decompression. The limits are well above the size of any real file
// and well below a machine's memory.
// greatest size of specs, model configurations and prices
inline constexpr std::size_t kMostSettings = std::size_t{4} << 20;
// greatest size of profiles, expert loads, schedules, published results and saved views
inline constexpr std::size_t kMostTables = std::size_t{64} << 20;
// greatest size of reports, and of logs and traces that are imported
inline constexpr std::size_t kMostMeasurements = std::size_t{256} << 20;
// greatest size of a text file to train on
inline constexpr std::size_t kMostTrainingText = std::size_t{1} << 30;

// Reads a complete file, and decompresses it if its contents are gzipped, whatever its name. All input is read through
// this function. Throws Error "path: cannot be read: reason", "path: is larger than N MiB" or "path: is cut short".
std::string read_input(const std::string& path, std::size_t most_bytes);

}  // namespace orrery
