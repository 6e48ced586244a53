#pragma once

#include <algorithm>
#include <vector>

namespace orrery {

// Returns the value below which a share of the values lies; 0 if there are none.
inline double quantile_of(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace orrery
