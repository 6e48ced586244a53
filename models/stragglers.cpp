#include "models/stragglers.h"

#include <algorithm>

namespace orrery {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014, Fast Splittable Pseudorandom Number Generators) as a function of a counter:
// uniform in [0, 1).
double uniform(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t x = (seed + 1) * 0xbf58476d1ce4e5b9ULL + (counter + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

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

}  // namespace orrery
