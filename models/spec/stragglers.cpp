#include "models/spec/stragglers.h"

#include <algorithm>

#include "models/base/normal.h"
#include "models/base/random.h"

namespace orrery {
double slowdown_of(const Spec& spec, std::int64_t rank) {
  const Cluster& c = spec.cluster;
  if (rank >= spec.strategy.gpus()) return 1;
  double slow = 1;
  if (c.straggler_share > 0 && uniform(spec.seed, static_cast<std::uint64_t>(rank)) < c.straggler_share)
    slow = c.straggler_slowdown;
  for (const Straggler& s : c.stragglers) {
    if (s.rank == rank) slow = std::max(slow, s.slowdown);
  }
  return slow;
}

std::vector<double> slowdowns(const Spec& spec) {
  std::vector<double> all;
  for (std::int64_t r = 0; r < spec.strategy.gpus(); ++r) all.push_back(slowdown_of(spec, r));
  return all;
}

double gpu_spread(const Cluster& cluster, double of_profile) {
  return cluster.variation && cluster.variation->gpus > 0 ? cluster.variation->gpus : of_profile;
}

double slowest_beyond_a_node(double spread, std::int64_t gpus) {
  constexpr double kNode = 8;
  if (static_cast<double>(gpus) <= kNode) return 1;
  return (1 + spread * largest_normal(static_cast<double>(gpus))) / (1 + spread * largest_normal(kNode));
}

}  // namespace orrery
