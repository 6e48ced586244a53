#pragma once

#include <cstddef>
#include <vector>

namespace orrery {

struct IndexRange {
  std::size_t begin = 0, end = 0;  // indices of the first, and behind the last

  std::size_t size() const { return end - begin; }
};

// Cuts a list into at most so many ranges of nearly equal length, for a table that has room for as many rows; a list
// that is short enough has one range for each index.
std::vector<IndexRange> index_ranges(std::size_t size, std::size_t most);

}  // namespace orrery
