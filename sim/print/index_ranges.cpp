#include "sim/print/index_ranges.h"

#include <algorithm>

namespace orrery {

std::vector<IndexRange> index_ranges(std::size_t size, std::size_t most) {
  const std::size_t count = std::min(most, size);
  std::vector<IndexRange> ranges;
  for (std::size_t i = 0; i < count; ++i) ranges.push_back({size * i / count, size * (i + 1) / count});
  return ranges;
}

}  // namespace orrery
