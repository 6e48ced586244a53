#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery {

// Returns the value below which a share (0 to 1) of the values lies: the one whose place in ascending order is nearest
// to that share of the way from the least to the greatest value. Returns 0 if there are no values.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(std::floor(share * static_cast<double>(values.size() - 1) + 0.5));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// Returns the median: the value in the middle, or the mean of both values in the middle if their number is even.
// Returns 0 if there are no values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace orrery
