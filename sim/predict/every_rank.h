#pragma once

#include <random>
#include <vector>

#include "models/base/normal.h"
#include "models/plan/repeat_steps.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/spec/stragglers.h"
#include "sim/cost/costs.h"
#include "sim/cost/variation.h"
#include "sim/engine/simulate.h"
#include "sim/predict/predict.h"

namespace orrery {

// Simulates runs in which every rank and every kernel has a time of its own, drawn as cluster.variation says: the truth
// that quantiles by order statistics are compared with. A run has two steps, of which the second takes the time from
// the end of the one before on the slowest rank to its own, because a rank that is late at the end of a step is late in
// the next. Hosts of these runs issue the second step ahead of its begin, and those of a reported step do not: what
// that is worth without any variation is added to every step.
class EveryRank {
 public:
  EveryRank(const Spec& spec, const Profile& profile) : variation_(*spec.cluster.variation) {
    Spec alike = spec;
    alike.cluster.variation->kernels = 0;
    const Plan one = make_plan(alike);
    plan_ = unfold(repeat_in_turn(one, kSteps));
    const Plan whole = unfold(one);
    timing_ = costs_of(whole, alike, profile).timing;
    const Picoseconds reported = period_of(whole, simulate(whole, timing_)).length();
    give_every_task_an_op();
    start_ = seconds(reported - second_step());
  }

  Seconds step(std::uint64_t seed) {
    std::mt19937_64 bits(seed);
    std::normal_distribution<double> normal;
    std::vector<double> gpu;
    // The timing has the mean slowest GPU of the job, over the slowest of eight; each rank's own takes its place.
    const double slowest =
        (1 + variation_.gpus * largest_normal(8)) * slowest_beyond_a_node(variation_.gpus, plan_.ranks);
    for (std::int64_t r = 0; r < plan_.ranks; ++r) gpu.push_back((1 + variation_.gpus * normal(bits)) / slowest);
    for (TaskId t = 0; t < plan_.task_count(); ++t) {
      const Op& op = plan_.ops[t];
      double factor = is_clocked(op) ? gpu[plan_.classes[plan_.slot_of(t)].representative] : 1;
      if (op.lane == LaneKind::compute && !moves(op)) factor *= 1 + variation_.kernels * normal(bits);
      timing_.rows.front()[t].duration = static_cast<Picoseconds>(factor * static_cast<double>(base_[t]));
    }
    return start_ + seconds(second_step());
  }

 private:
  static constexpr TaskId kSteps = 2;

  Picoseconds second_step() const {
    const Trace trace = simulate(plan_, timing_);
    return end_of(trace, kSteps - 1) - end_of(trace, 0);
  }

  // The time at which all ranks have ended a step.
  Picoseconds end_of(const Trace& trace, TaskId step) const {
    Picoseconds end = 0;
    for (const RankClass& c : plan_.classes) {
      const TaskId tasks = (c.end - c.begin) / kSteps;
      for (TaskId t = c.begin + step * tasks; t < c.begin + (step + 1) * tasks; ++t)
        end = std::max(end, trace.spans[t].ended);
    }
    return end;
  }

  void give_every_task_an_op() {
    std::vector<Op> ops;
    std::vector<OpTiming> row;
    for (TaskId t = 0; t < plan_.task_count(); ++t) {
      ops.push_back(plan_.op_of(t));
      row.push_back(timing_.of(plan_.slot_of(t), plan_.tasks[t].op));
      base_.push_back(row.back().duration);
      plan_.tasks[t].op = t;
    }
    plan_.ops = std::move(ops);
    timing_.rows = {std::move(row)};
    timing_.row_of_slot.assign(plan_.classes.size(), 0);
  }

  Variation variation_;
  Seconds start_ = 0;
  Plan plan_;
  Timing timing_;
  std::vector<Picoseconds> base_;
};

}  // namespace orrery
