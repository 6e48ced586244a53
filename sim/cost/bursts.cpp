#include "sim/cost/bursts.h"

#include <algorithm>
#include <cmath>

namespace orrery {

Seconds time_among_bursts(Seconds work, const Bursts& b) {
  if (!(b.load > 0 && b.burst > 0)) return work / (1 - b.load);
  const Seconds free = b.burst * (1 - b.load) / b.load;
  const double whole = std::floor(work / free);
  const Seconds rest = std::clamp(work - whole * free, 0.0, free);
  const double none = std::max(0.0, 1 - b.load * (1 + rest / b.burst)), n = static_cast<double>(b.domains) + 1;
  const double below = (std::pow(none + b.load, n) - std::pow(none, n)) / (b.load * n);
  return work + whole * b.burst + b.burst * (1 - below);
}

}  // namespace orrery
