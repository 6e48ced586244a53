#include "sim/predict/step_quantiles.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "models/base/normal.h"
#include "models/base/quantile.h"
#include "models/base/random.h"
#include "models/spec/sharding.h"
#include "models/spec/stragglers.h"
#include "sim/cost/variation.h"
#include "sim/engine/simulate.h"
#include "sim/predict/out_of_step.h"

namespace orrery {
namespace {

// The number of GPUs whose slowest the profile's times stand for: published steps ran on full nodes of eight.
constexpr double kNode = 8;

// The relative time of a GPU whose slowness is `normal` standard deviations, over that of the slowest of eight, less 1.
double slowness_of(double deviation, double normal) {
  static const double kSlowest = largest_normal(kNode);
  return (1 + deviation * normal) / (1 + deviation * kSlowest) - 1;
}

// The standard normal value that the largest of n is below with the probability `share`.
double largest_below(double share, double n) {
  // share^(1/n) = 1 - above, where above keeps its digits for large n
  const double above = -std::expm1(std::log(share) / n);
  return -normal_quantile(above);
}

// The time of the reported step if stages are as slow as slowness_of(stage).
Seconds slowed_step(const VariedRanks& ranks, const std::function<double(std::int64_t)>& slowness_of,
                    const std::atomic<bool>* stop) {
  const Plan& plan = ranks.plan;
  Timing timing = ranks.timing;
  const std::vector<std::vector<OpTiming>> rows = std::move(timing.rows);
  timing.rows.clear();
  for (std::size_t slot = 0; slot < plan.classes.size(); ++slot) {
    std::vector<OpTiming> row = rows[timing.row_of_slot[slot]];
    const double slowness = std::min(ranks.limits[slot], slowness_of(plan.classes[slot].stage));
    const double factor = (1 + slowness) / ranks.in_timing;
    for (std::size_t op = 0; op < row.size(); ++op) {
      if (is_clocked(plan.ops[op]))
        row[op].duration = static_cast<Picoseconds>(factor * static_cast<double>(row[op].duration));
    }
    timing.row_of_slot[slot] = static_cast<std::uint32_t>(timing.rows.size());
    timing.rows.push_back(std::move(row));
  }
  return seconds(period_of(plan, simulate(plan, timing, stop)).length());
}

// A table of the largest of n standard normal values over w = -log(-log(share)), on which it is nearly a straight line
// (the largest of many values tends to Gumbel's distribution).
class LargestOf {
 public:
  explicit LargestOf(double n) {
    for (int i = 0; i <= kSteps; ++i) values_.push_back(largest_below(std::exp(-std::exp(-w_of(i))), n));
  }
  double at(double share) const {
    const double w = -std::log(-std::log(std::clamp(share, 1e-12, 1 - 1e-12)));
    const double place = std::clamp((w - kLow) / (kHigh - kLow) * kSteps, 0.0, kSteps - 1e-9);
    const auto i = static_cast<std::size_t>(place);
    return std::lerp(values_[i], values_[i + 1], place - static_cast<double>(i));
  }

 private:
  static constexpr int kSteps = 512;
  static constexpr double kLow = -3.3, kHigh = 28;  // -log(-log()) of 1e-12 and of 1 - 1e-12
  static double w_of(int i) { return kLow + (kHigh - kLow) * i / kSteps; }
  std::vector<double> values_;
};

// Draws steps: in each, the time of the slowest replica. The number of draws is such that some millions of sets are
// drawn in all; with many replicas the slowest of them differs so little between draws that fewer are enough.
std::vector<double> drawn_steps(const Lockstep& sets, const StageResponse& r, double deviation, std::uint64_t seed) {
  constexpr std::int64_t kSets = 4'000'000, kLeast = 256, kMost = 4096;
  const std::int64_t draws = std::clamp(kSets / (sets.replicas * sets.stages), kLeast, kMost);
  const LargestOf slowest(static_cast<double>(sets.ranks));
  std::vector<double> steps;
  std::uint64_t drawn = 0;
  for (std::int64_t d = 0; d < draws; ++d) {
    double most = 0;
    for (std::int64_t replica = 0; replica < sets.replicas; ++replica) {
      double sum = 0, pace = -r.base;
      for (std::size_t stage = 0; stage < r.pacing.size(); ++stage) {
        const double x = slowness_of(deviation, slowest.at(uniform(seed, drawn++)));
        sum += x;
        pace = std::max(pace, r.pacing[stage] * x - r.spare[stage]);
      }
      most = std::max(most, r.base + r.passing * sum + pace);
    }
    steps.push_back(most);
  }
  return steps;
}

// Joins the sets of ranks that have a rank in common with one group.
class Sets {
 public:
  explicit Sets(std::int64_t ranks) : parent_(ranks) { std::iota(parent_.begin(), parent_.end(), 0); }
  std::int64_t root(std::int64_t r) {
    while (parent_[r] != r) r = parent_[r] = parent_[parent_[r]];
    return r;
  }
  void join(std::int64_t a, std::int64_t b) { parent_[root(a)] = root(b); }

 private:
  std::vector<std::int64_t> parent_;
};

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The slowness of the ranks of every place but the last: the middle ones of as many equal parts of a stage's sets
// without the slowest. slowness_at(share, n): what a share of all sets of n ranks is below.
std::vector<double> limits_of(const OutOfStep& some, const Lockstep& sets,
                              const std::function<double(double, double)>& slowness_at) {
  const double others = 1 - 1 / static_cast<double>(sets.replicas);
  std::vector<double> limits;
  for (const std::int64_t place : some.places) {
    const double share = others * (static_cast<double>(place) + 0.5) / static_cast<double>(some.ranks - 1);
    limits.push_back(place == some.ranks - 1 ? kUnlimited : slowness_at(share, static_cast<double>(sets.ranks)));
  }
  return limits;
}

// The work of a rank of each stage that its GPU's clock limits.
std::vector<double> clocked_work(const VariedRanks& ranks, std::int64_t stages) {
  std::vector<double> work(stages);
  for (std::uint32_t slot = 0; slot < ranks.plan.classes.size(); ++slot) {
    const RankClass& c = ranks.plan.classes[slot];
    double sum = 0;
    for (TaskId t = c.begin; t < c.end; ++t) {
      if (is_clocked(ranks.plan.op_of(t)))
        sum += static_cast<double>(ranks.timing.of(slot, ranks.plan.tasks[t].op).duration);
    }
    work[c.stage] = std::max(work[c.stage], sum);
  }
  return work;
}

// Gives evenly spaced values of a list, at most eight, what `value_at` returns for them, and those between the values
// of a line.
void fill_between(std::vector<Seconds>& values, const std::function<Seconds(std::int64_t)>& value_at) {
  const std::int64_t size = std::ssize(values), known = std::min<std::int64_t>(size, 8);
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < known; ++i) {
    const std::int64_t at = known == 1 ? 0 : i * (size - 1) / (known - 1);
    values[at] = value_at(at);
    for (std::int64_t between = before + 1; between < at; ++between) {
      const double share = static_cast<double>(between - before) / static_cast<double>(at - before);
      values[between] = std::lerp(values[before], values[at], share);
    }
    before = at;
  }
}

// The standard deviation of all kernels of a rank's step together, over the time of those that the clock limits.
double deviation_of_kernels(const Spec& spec, const Plan& plan, const Timing& timing) {
  double squares = 0, clocked = 0;
  const RankClass& ranks = plan.classes.front();
  for (TaskId t = ranks.begin; t < ranks.end; ++t) {
    const Op& op = plan.op_of(t);
    if (op.lane != LaneKind::compute || moves(op)) continue;
    const auto duration = static_cast<double>(timing.of(0, plan.tasks[t].op).duration);
    squares += duration * duration;
    clocked += is_clocked(op) ? duration : 0;
  }
  return clocked > 0 ? spec.cluster.variation->kernels * std::sqrt(squares) / clocked : 0;
}

}  // namespace

Lockstep lockstep_of(const Plan& plan, bool gathers) {
  Sets sets(plan.ranks);
  for (std::size_t d = 0; d < plan.dimensions.size(); ++d) {
    const auto dimension = static_cast<Dimension>(d);
    if (!meets_in_layers(dimension) && !(gathers && dimension == Dimension::data)) continue;
    for (const auto& group : plan.dimensions[d].groups) {
      for (const std::int32_t r : group) sets.join(group.front(), r);
    }
  }
  Lockstep result;
  const std::int64_t first = sets.root(0);
  result.ranks = 0;
  for (std::int64_t r = 0; r < plan.workers(); ++r) result.ranks += sets.root(r) == first ? 1 : 0;
  for (const RankClass& c : plan.classes) result.stages = std::max(result.stages, c.stage + 1);
  result.replicas = std::max<std::int64_t>(1, plan.workers() / (result.ranks * result.stages));
  return result;
}

StageResponse stage_response(const VariedRanks& ranks, std::int64_t stages, double slowness,
                             const std::atomic<bool>* stop) {
  const auto step = [&](const std::function<bool(std::int64_t)>& slow) {
    return slowed_step(
        ranks, [&](std::int64_t stage) { return slow(stage) ? slowness : 0; }, stop);
  };
  StageResponse r{.base = step([](std::int64_t) { return false; })};
  const Seconds together = step([](std::int64_t) { return true; }) - r.base;
  std::vector<Seconds> alone(stages, together);
  if (stages > 1)
    fill_between(alone, [&](std::int64_t slow) { return step([slow](std::int64_t s) { return s == slow; }) - r.base; });
  const auto slowest = std::max_element(alone.begin(), alone.end());
  if (stages > 1) r.passing = std::max(0.0, (together - *slowest) / slowness / static_cast<double>(stages - 1));
  // A part of the slowest stage's work may be hidden; other stages are taken to hide the same share of their work.
  const std::vector<double> work = clocked_work(ranks, stages);
  const double of_slowest = work[slowest - alone.begin()];
  for (std::int64_t i = 0; i < stages; ++i) {
    const Seconds whole = of_slowest > 0 ? *slowest * work[i] / of_slowest : alone[i];
    r.spare.push_back(std::max(0.0, whole - alone[i]));
    r.pacing.push_back(std::max(0.0, whole / slowness - r.passing));
  }
  return r;
}

StepQuantiles step_quantiles(const Spec& spec, const Plan& plan, const Timing& timing, Seconds step,
                             const std::atomic<bool>* stop) {
  const double deviation = spec.cluster.variation->gpus;
  const bool gathers = row_of(spec.strategy.sharding).shards_parameters;
  const Lockstep sets = lockstep_of(plan, gathers), in_layers = gathers ? lockstep_of(plan, false) : sets;
  const double in_timing = slowest_beyond_a_node(deviation, plan.workers());
  const auto ranks = static_cast<double>(plan.workers());
  // A report adds some time to the simulated one, such as the allocator's.
  const Seconds more = step - seconds(period_of(plan, simulate(plan, timing, stop)).length());
  std::optional<OutOfStep> some;
  if (sets.stages == 1 || gathers) some = ranks_out_of_step(plan, timing, in_layers.replicas);
  // the deviation of ranks, of which the profile's times know GPUs' alone, over that of GPUs
  const bool once = sets.stages == 1 && sets.ranks == 1;
  const double wider = once ? std::hypot(1, deviation_of_kernels(spec, plan, timing) / deviation) : 1;
  const auto slowness_at = [&](double share, double n) {
    return slowness_of(deviation, wider * largest_below(share, n));
  };
  const VariedRanks varied =
      some ? VariedRanks{some->plan, some->timing, in_timing, limits_of(*some, in_layers, slowness_at)}
           : VariedRanks{plan, timing, in_timing, std::vector<double>(plan.classes.size(), kUnlimited)};
  if (sets.stages == 1) {
    const auto at = [&](double share) {
      const double slowness = slowness_at(share, ranks);
      return more + slowed_step(
                        varied, [&](std::int64_t) { return slowness; }, stop);
    };
    return {at(0.5), at(0.95)};
  }
  const double slowness = std::max(0.005, slowness_at(0.99, ranks));
  const StageResponse r = stage_response(varied, sets.stages, slowness, stop);
  const std::vector<double> steps = drawn_steps(sets, r, deviation, spec.seed);
  return {more + quantile(steps, 0.5), more + quantile(steps, 0.95)};
}

}  // namespace orrery
