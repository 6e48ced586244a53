#include "models/spec/stragglers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orrery {
namespace {

// Returns the counter-th number of the generator SplitMix64 (Steele, Lea, Flood 2014, Fast Splittable Pseudorandom
// Number Generators) for a seed: uniform in [0, 1).
double uniform(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t x = (seed + 1) * 0xbf58476d1ce4e5b9ULL + (counter + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

// Returns the expected largest of n standard normal values: the quantile of (n - 3/8) / (n + 1/4) (Blom 1958).
double largest_normal(double n) {
  const double below = (n - 0.375) / (n + 0.25);
  double low = 0, high = 10;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < below ? low : high) = middle;
  }
  return low;
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

double slowest_beyond_a_node(double spread, std::int64_t gpus) {
  constexpr double kNode = 8;
  if (static_cast<double>(gpus) <= kNode) return 1;
  return (1 + spread * largest_normal(static_cast<double>(gpus))) / (1 + spread * largest_normal(kNode));
}

}  // namespace orrery
