#include "sim/memory/memory_curve.h"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

Bytes most_of(const std::vector<MemorySample>& samples) {
  Bytes most = 0;
  for (const MemorySample& s : samples)
    most = std::max(most, std::accumulate(s.bytes.begin(), s.bytes.end(), Bytes{0}));
  return most;
}

}  // namespace

std::vector<MemorySample> samples_of(const std::vector<MemoryCurve>& curves, std::int64_t steps,
                                     Picoseconds step_time) {
  std::vector<MemorySample> result;
  for (const MemoryCurve& curve : curves) {
    const auto steady = std::max_element(curve.begin() + 1, curve.end(),
                                         [](const auto& a, const auto& b) { return most_of(a) < most_of(b); });
    for (std::int64_t i = 0; i < steps; ++i) {
      const auto& fullest = most_of(curve.front()) > most_of(*steady) ? curve.front() : *steady;
      const auto& samples = steps == 1 ? fullest : curve[std::min<std::size_t>(i, curve.size() - 1)];
      for (MemorySample s : samples) {
        s.time += i * step_time;
        result.push_back(s);
      }
    }
  }
  return result;
}

}  // namespace orrery
