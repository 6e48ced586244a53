#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timing.h"

namespace orrery {

// A plan and its timing written by hand, task by task: slots one after another, their tasks in issue order.
class TinyPlan {
 public:
  TinyPlan() {
    plan_.blocks.resize(1);
    timing_.rows.resize(1);
    plan_.dimensions.resize(static_cast<std::size_t>(Dimension::world) + 1);
  }

  std::uint32_t op(const std::string& name, LaneKind lane, OpTiming timing) {
    plan_.ops.push_back({.name = name, .lane = lane});
    if (lane != LaneKind::compute) plan_.ops.back().work = Collective{};
    timing_.rows[0].push_back(timing);
    return static_cast<std::uint32_t>(plan_.ops.size() - 1);
  }
  Op& change(std::uint32_t op) { return plan_.ops[op]; }
  OpTiming& cost(std::uint32_t op) { return timing_.rows[0][op]; }

  void slot(std::int64_t stage, std::int64_t multiplicity = 1) {
    close_slot();
    const auto index = static_cast<std::uint32_t>(plan_.classes.size());
    const auto begin = static_cast<TaskId>(plan_.tasks.size());
    plan_.classes.push_back({.name = fmt::format("slot {}", index),
                             .stage = stage,
                             .representative = plan_.ranks,
                             .multiplicity = multiplicity,
                             .begin = begin,
                             .end = begin});
    plan_.frames.push_back({.block = 0, .slot = index});
    plan_.ranks += multiplicity;
    timing_.row_of_slot.push_back(0);
  }

  TaskId task(std::uint32_t op, const std::vector<TaskId>& after = {}, std::uint8_t flags = 0) {
    const auto slot = static_cast<std::uint32_t>(plan_.classes.size() - 1);
    plan_.tasks.push_back({.op = op,
                           .frame = slot,
                           .lane = slot * kLanes + static_cast<std::uint32_t>(plan_.ops[op].lane),
                           .first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size()),
                           .flags = flags});
    plan_.dependencies.insert(plan_.dependencies.end(), after.begin(), after.end());
    return static_cast<TaskId>(plan_.tasks.size() - 1);
  }

  void match(const std::vector<TaskId>& members) {
    for (const TaskId t : members) plan_.tasks[t].match = static_cast<std::uint32_t>(plan_.matches.size());
    plan_.matches.push_back(
        {static_cast<std::uint32_t>(plan_.match_members.size()), static_cast<std::uint32_t>(members.size())});
    plan_.match_members.insert(plan_.match_members.end(), members.begin(), members.end());
  }

  // Must be called last before plan() and timing().
  void finish() {
    close_slot();
    plan_.tasks.push_back({.first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size())});
  }
  const Plan& plan() const { return plan_; }
  Timing& timing() { return timing_; }
  Trace run() const { return simulate(plan_, timing_); }

 private:
  void close_slot() {
    if (!plan_.classes.empty()) plan_.classes.back().end = static_cast<TaskId>(plan_.tasks.size());
  }

  Plan plan_;
  Timing timing_;
};

// One line per task: "slot 0 send next   send: issued 0 entered 10 matched 15 ended 25".
inline std::string timeline(const Plan& plan, const Trace& trace) {
  std::string text;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Span& s = trace.spans[t];
    const Op& op = plan.op_of(t);
    text += fmt::format("{} {:<16} {:<6} issued {:>3} entered {:>3} matched {:>3} ended {:>3}\n",
                        plan.classes[plan.slot_of(t)].name, name_of(op.lane), op.name, s.issued, s.entered, s.matched,
                        s.ended);
  }
  return text;
}

}  // namespace orrery
