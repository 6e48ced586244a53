#include "sim/predict/hash_quantiles.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "models/base/quantile.h"
#include "models/spec/asynchrony.h"
#include "sim/engine/simulate.h"

namespace orrery {
namespace {

// The share of hashes whose slowdown stands for an unlucky set's.
constexpr double kUnlucky = 0.99;

// A set of connections, with the seconds by which the step grows per unit of the set's slowdown.
struct Weighed {
  std::uint64_t set = 0;
  Seconds time = 0;  // of the transfers, without collisions
  std::vector<HashedSlowdown> slowdowns{};
  double weight = 0;

  // How much more an unlucky draw lengthens the transfers than the middle one.
  double unlucky() const { return slowdown_at(slowdowns, kUnlucky) - slowdown_at(slowdowns, 0.5); }
};

// The greatest number of sets whose weight is simulated, those that the job spends most time on; of plans that take
// long to simulate it is as many as make kWeighedTasks tasks in all, but at least kLeastWeighed.
constexpr std::int64_t kMostWeighed = 6, kLeastWeighed = 2, kWeighedTasks = 2'000'000;
// The least share of a step that a set adds to it when it is unlucky, if it is to count.
constexpr double kNoticed = 1e-4;

// Returns the sets whose collisions may be more or less costly, those with the most time first.
std::vector<Weighed> uncertain_sets(const Costs& costs, std::int64_t tasks) {
  std::vector<Weighed> sets;
  for (const auto& [set, transfers] : costs.hashed) {
    Weighed w = {set, transfers.time, transfers.slowdowns()};
    if (w.unlucky() > 0) sets.push_back(std::move(w));
  }
  const auto longer = [](const Weighed& a, const Weighed& b) { return a.time > b.time; };
  std::stable_sort(sets.begin(), sets.end(), longer);
  const std::int64_t most = std::clamp(kWeighedTasks / tasks, kLeastWeighed, kMostWeighed);
  if (std::ssize(sets) > most) sets.resize(most);
  return sets;
}

// Returns the seconds that an unlucky draw adds to the step.
Seconds most_added(const Weighed& w) { return w.weight * w.unlucky(); }

// Returns the sets that add a noticeable time to the step when they are unlucky.
std::vector<Weighed> weighed_sets(const HashedStep& hashed, const std::atomic<bool>* stop) {
  std::vector<Weighed> sets = uncertain_sets(hashed.costs, static_cast<std::int64_t>(hashed.plan.task_count()));
  HashDraw middle;
  for (const auto& [set, transfers] : hashed.costs.hashed) middle.shares[set] = 0.5;
  const Seconds base = hashed.at(middle, stop);
  for (Weighed& w : sets) {
    HashDraw unlucky = middle;
    unlucky.shares[w.set] = kUnlucky;
    w.weight = std::max(0.0, hashed.at(unlucky, stop) - base) / w.unlucky();
  }
  std::erase_if(sets, [&](const Weighed& w) { return most_added(w) < kNoticed * base; });
  return sets;
}

// Some seed's draw: the slowdowns of the sets that matter, and the first estimate of what they add to the step.
struct Drawn {
  double estimate = 0;
  std::int64_t seed = 0;
  std::vector<double> slowdowns;
};

std::vector<Drawn> ordered_draws(const std::vector<Weighed>& sets) {
  constexpr std::int64_t kDraws = 4096;
  std::vector<Drawn> draws(kDraws);
  for (std::int64_t i = 0; i < kDraws; ++i) {
    Drawn& drawn = draws[i];
    drawn.seed = i + 1;
    const HashDraw draw = {.seed = drawn.seed, .shares = {}};
    for (const Weighed& w : sets) {
      drawn.slowdowns.push_back(slowdown_at(w.slowdowns, *draw.share_of(w.set)));
      drawn.estimate += w.weight * drawn.slowdowns.back();
    }
  }
  std::stable_sort(draws.begin(), draws.end(), [](const Drawn& x, const Drawn& y) { return x.estimate < y.estimate; });
  return draws;
}

}  // namespace

Seconds HashedStep::at(const HashDraw& draw, const std::atomic<bool>* stop) const {
  const Timing timing = costs_of(plan, spec, profile, plan.workers(), draw).timing;
  return seconds(period_of(plan, simulate(plan, timing, stop)).length());
}

bool draws_hashes(const Spec& spec) {
  const std::optional<Network>& n = spec.cluster.network;
  return n && (n->routing == Routing::ecmp || n->hashed_planes) && !n->hash_seed && n->storage_Gbps == 0 &&
         !spec.generation && !asynchronous_workers(spec.strategy);
}

StepQuantiles hash_quantiles(const HashedStep& hashed, Seconds mean, Seconds step, const std::atomic<bool>* stop) {
  // Draws around a quantile: fewer for plans that take long to simulate.
  constexpr std::int64_t kMostTasks = 600'000, kMostAround = 4;
  const auto tasks = static_cast<std::int64_t>(hashed.plan.task_count());
  const std::int64_t around = std::min(kMostTasks / tasks, kMostAround);
  constexpr double kApart = 0.005;  // share of all draws between two of those around a quantile
  const std::vector<Weighed> sets = weighed_sets(hashed, stop);
  if (sets.empty()) return {step, step};
  const std::vector<Drawn> draws = ordered_draws(sets);
  std::map<std::vector<double>, Seconds> simulated;
  const auto time_of = [&](const Drawn& drawn) {
    const auto [known, fresh] = simulated.try_emplace(drawn.slowdowns);
    if (fresh) known->second = hashed.at({.seed = drawn.seed, .shares = {}}, stop);
    return known->second;
  };
  const auto at = [&](double share) {
    std::vector<double> steps;
    for (std::int64_t i = -around; i <= around; ++i) {
      const double place = (share + kApart * static_cast<double>(i)) * static_cast<double>(draws.size() - 1);
      steps.push_back(time_of(draws[std::lround(place)]));
    }
    // A report adds some time to the simulated one, such as the allocator's.
    return step - mean + median(steps);
  };
  return {at(0.5), at(0.95)};
}

}  // namespace orrery
