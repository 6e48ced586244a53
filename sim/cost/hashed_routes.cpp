#include "sim/cost/hashed_routes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

namespace orrery {
namespace {

// The greatest number of queue pairs of a switch for which the distribution is computed exactly.
constexpr std::int64_t kMostExact = 512;

// Coefficients of a polynomial, from that of power 0 on.
using Polynomial = std::vector<double>;

Polynomial product(const Polynomial& a, const Polynomial& b, std::size_t size) {
  Polynomial result(std::min(size, a.size() + b.size() - 1), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size() && i + j < result.size(); ++j) result[i + j] += a[i] * b[j];
  }
  return result;
}

// Returns the probabilities of a Poisson distribution for 0 to `most`.
Polynomial poisson(double mean, std::int64_t most) {
  Polynomial p(static_cast<std::size_t>(most) + 1);
  for (std::size_t k = 0; k < p.size(); ++k) {
    const auto n = static_cast<double>(k);
    p[k] = std::exp(n * std::log(mean) - mean - std::lgamma(n + 1));
  }
  return p;
}

// Returns the probability that none of `bins` bins gets more than `most` of `balls` balls. The numbers of balls in bins
// are independent Poisson numbers under the condition that their sum is `balls`, so the result is the probability of
// that sum with all numbers at most `most`, over the probability of that sum.
double none_above(std::int64_t most, std::int64_t balls, std::int64_t bins) {
  Polynomial power = poisson(static_cast<double>(balls) / static_cast<double>(bins), std::min(most, balls));
  if (balls > kMostExact) {
    double sum = 0;
    for (const double p : power) sum += p;
    return std::pow(std::min(1.0, sum), static_cast<double>(bins));
  }
  Polynomial all{1};
  const auto size = static_cast<std::size_t>(balls) + 1;
  for (std::int64_t left = bins; left > 0; left /= 2) {
    if (left % 2 == 1) all = product(all, power, size);
    if (left > 1) power = product(power, power, size);
  }
  if (all.size() < size) return 0;
  return std::min(1.0, all.back() / poisson(static_cast<double>(balls), balls).back());
}

std::vector<LargestLoad> compute(const HashedFlows& f) {
  const std::int64_t balls = f.flows * f.queue_pairs;
  std::vector<LargestLoad> loads;
  double below = 0;
  for (std::int64_t most = (balls + f.uplinks - 1) / f.uplinks; most <= balls && 1 - below > 1e-9; ++most) {
    const double now = std::pow(none_above(most, balls, f.uplinks), static_cast<double>(f.switches));
    if (now > below) loads.push_back({most, now - below});
    below = std::max(below, now);
  }
  return loads;
}

}  // namespace

// Searches ask for the same few distributions thousands of times, from several threads.
std::vector<LargestLoad> largest_loads(const HashedFlows& flows) {
  static std::mutex mutex;
  static std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, std::vector<LargestLoad>> known;
  const auto key = std::tuple(flows.flows, flows.uplinks, flows.queue_pairs, flows.switches);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  std::vector<LargestLoad> loads = compute(flows);
  const std::lock_guard lock(mutex);
  return known.try_emplace(key, std::move(loads)).first->second;
}

double mean_slowdown(const HashedFlows& flows, double demand) {
  double sum = 0, whole = 0;
  for (const LargestLoad& load : largest_loads(flows)) {
    const double shared = demand * static_cast<double>(load.queue_pairs) / static_cast<double>(flows.queue_pairs);
    sum += load.probability * std::max(1.0, shared);
    whole += load.probability;
  }
  return whole > 0 ? sum / whole : 1;
}

}  // namespace orrery
