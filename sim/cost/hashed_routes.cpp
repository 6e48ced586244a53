#include "sim/cost/hashed_routes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "models/base/units.h"

namespace orrery {
namespace {

// The greatest number of queue pairs of a switch for which the distribution is computed exactly.
constexpr std::int64_t kMostExact = 256;
// The probability below which larger loads are left out.
constexpr double kLeftOut = 1e-9;

// Coefficients of a polynomial, from that of power 0 on.
using Polynomial = std::vector<double>;

Polynomial product(const Polynomial& a, const Polynomial& b, std::size_t size) {
  Polynomial result(std::min(size, a.size() + b.size() - 1), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size() && i + j < result.size(); ++j) result[i + j] += a[i] * b[j];
  }
  return result;
}

// Returns the probability that a Poisson number with this mean is k.
double poisson(double mean, double k) { return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1)); }

// Returns the probability that none of `bins` bins gets more than `most` of `balls` balls. The numbers of balls in bins
// are independent Poisson numbers under the condition that their sum is `balls`, so the result is the probability of
// that sum with all numbers at most `most`, divided by the probability of that sum.
double none_above(std::int64_t most, std::int64_t balls, std::int64_t bins) {
  const auto n = static_cast<double>(balls);
  Polynomial power(static_cast<std::size_t>(std::min(most, balls)) + 1), all{1};
  for (std::size_t k = 0; k < power.size(); ++k)
    power[k] = poisson(n / static_cast<double>(bins), static_cast<double>(k));
  const auto size = static_cast<std::size_t>(balls) + 1;
  for (std::int64_t left = bins; left > 0; left /= 2) {
    if (left % 2 == 1) all = product(all, power, size);
    if (left > 1) power = product(power, power, size);
  }
  return all.size() < size ? 0 : std::min(1.0, all.back() / poisson(n, n));
}

// A distribution function of loads, from which probabilities are taken as its steps.
class Steps {
 public:
  // Adds the probability that no load is above `most`; returns whether larger loads matter.
  bool add(std::int64_t most, double below_or_equal) {
    if (below_or_equal > sum_) loads.push_back({most, below_or_equal - sum_});
    sum_ = std::max(sum_, below_or_equal);
    return 1 - sum_ > kLeftOut;
  }

  std::vector<LargestLoad> loads;

 private:
  double sum_ = 0;
};

std::vector<LargestLoad> exactly(const HashedFlows& f, std::int64_t balls) {
  Steps steps;
  for (std::int64_t most = ceil_div(balls, f.uplinks); most <= balls; ++most) {
    if (!steps.add(most, std::pow(none_above(most, balls, f.uplinks), static_cast<double>(f.switches)))) break;
  }
  return std::move(steps.loads);
}

// Takes the numbers on all uplinks to be independent Poisson numbers. Their upper tails are summed from above, so that
// powers of probabilities near 1 keep their digits.
std::vector<LargestLoad> independently(const HashedFlows& f, std::int64_t balls) {
  const double mean = static_cast<double>(balls) / static_cast<double>(f.uplinks), deviation = std::sqrt(mean);
  // The largest load is at least the mean, and beyond 14 standard deviations, or 40 for small means, nothing counts.
  const auto first = static_cast<std::int64_t>(std::ceil(mean));
  const auto last = std::max(first, std::min(balls, static_cast<std::int64_t>(mean + 14 * deviation + 40)));
  std::vector<double> tail(static_cast<std::size_t>(last - first) + 2, 0);  // of loads above first + i
  for (std::int64_t k = last; k > first; --k)
    tail[static_cast<std::size_t>(k - first) - 1] =
        tail[static_cast<std::size_t>(k - first)] + poisson(mean, static_cast<double>(k));
  const double uplinks = static_cast<double>(f.uplinks) * static_cast<double>(f.switches);
  Steps steps;
  for (std::int64_t most = first; most <= last; ++most) {
    const double above = std::min(1.0, tail[static_cast<std::size_t>(most - first)]);
    if (!steps.add(most, most == last ? 1 : std::exp(uplinks * std::log1p(-above)))) break;
  }
  return std::move(steps.loads);
}

std::vector<LargestLoad> compute(const HashedFlows& f) {
  const std::int64_t balls = f.flows * f.queue_pairs;
  if (f.uplinks == 1) return {{balls, 1}};
  return balls <= kMostExact ? exactly(f, balls) : independently(f, balls);
}

// Returns the probabilities that one uplink of a switch carries 0, 1, 2 and more queue pairs, or the fullest of such
// uplinks of all switches.
std::vector<double> loads_of_one(const HashedFlows& f) {
  const std::int64_t balls = f.flows * f.queue_pairs;
  std::vector<double> result(static_cast<std::size_t>(balls) + 1, 0);
  const double hit = 1 / static_cast<double>(f.uplinks), n = static_cast<double>(balls);
  for (double k = 0; k <= n && f.uplinks > 1; ++k) {
    const double ways = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
    result[static_cast<std::size_t>(k)] = std::exp(ways + k * std::log(hit) + (n - k) * std::log1p(-hit));
  }
  if (f.uplinks == 1) result.back() = 1;
  double below = 0, before = 0;
  for (double& probability : result) {
    below = std::min(1.0, below + probability);
    const double all = std::pow(below, static_cast<double>(f.switches));
    probability = all - std::exchange(before, all);
  }
  return result;
}

// Returns the larger of two factors that are drawn apart, each given with rising factors.
std::vector<HashedSlowdown> larger_of(const std::vector<HashedSlowdown>& a, const std::vector<HashedSlowdown>& b) {
  std::vector<HashedSlowdown> result;
  double below_a = 0, below_b = 0, below = 0;
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    const bool first = j == b.size() || (i < a.size() && a[i].factor <= b[j].factor);
    const HashedSlowdown& next = first ? a[i++] : b[j++];
    (first ? below_a : below_b) += next.probability;
    const double now = below_a * below_b;
    if (now > below) result.push_back({next.factor, now - below});
    below = now;
  }
  return result;
}

}  // namespace

// Searches ask for the same few distributions thousands of times, from several threads.
const std::vector<LargestLoad>& largest_loads(const HashedFlows& flows) {
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

std::vector<HashedSlowdown> slowdowns(const HashedFlows& f, double demand) {
  const auto factor = [&](double queue_pairs) {
    return std::max(1.0, demand * queue_pairs / static_cast<double>(f.queue_pairs));
  };
  const auto of_alike = [&](std::int64_t switches, std::int64_t uplinks) {
    std::vector<HashedSlowdown> result;
    if (switches < 1) return result;
    const HashedFlows alike = {f.flows, uplinks, f.queue_pairs, switches};
    for (const LargestLoad& load : largest_loads(alike))
      result.push_back({factor(static_cast<double>(load.queue_pairs)), load.probability});
    return result;
  };
  const std::int64_t faulty = std::min(f.faulty, f.switches);
  std::vector<HashedSlowdown> all = of_alike(f.switches - faulty, f.uplinks);
  if (faulty == 0) return all;
  const std::vector<HashedSlowdown> of_faulty = of_alike(faulty, f.fewest);
  all = all.empty() ? of_faulty : larger_of(all, of_faulty);
  if (f.slowest >= 1) return all;
  std::vector<HashedSlowdown> slow;
  const std::vector<double> loads = loads_of_one({f.flows, f.fewest, f.queue_pairs, faulty});
  for (std::size_t k = 0; k < loads.size(); ++k) slow.push_back({factor(static_cast<double>(k) / f.slowest), loads[k]});
  return larger_of(all, slow);
}

double mean_slowdown(const HashedFlows& flows, double demand) {
  double sum = 0, whole = 0;
  for (const auto& [factor, probability] : slowdowns(flows, demand)) {
    sum += probability * factor;
    whole += probability;
  }
  return whole > 0 ? sum / whole : 1;
}

double slowdown_at(const std::vector<HashedSlowdown>& slowdowns, double share) {
  double factor = 1, sum = 0;
  for (const HashedSlowdown& s : slowdowns) {
    if (sum >= share && sum > 0) break;
    factor = s.factor;
    sum += s.probability;
  }
  return factor;
}

double slowdown_at(const HashedFlows& flows, double demand, double share) {
  return slowdown_at(slowdowns(flows, demand), share);
}

}  // namespace orrery
