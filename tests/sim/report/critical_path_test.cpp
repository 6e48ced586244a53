#include "sim/report/critical_path.h"

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"
#include "tests/sim/small_plans.h"
#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

// Launch times that never matter, often matter, and delay everything.
constexpr Picoseconds kIssue[] = {0, 40'000'000, 400'000'000};

// Start of the stretch before a task's launch in which the host is at work or waits for one task: that task's end, or
// 0.
Picoseconds host_busy_since(const Plan& plan, const Trace& trace, TaskId t, Picoseconds until) {
  Picoseconds start = launch_start(plan, trace, t);
  while (start > until && start == trace.spans[t - 1].issued) start = launch_start(plan, trace, --t);
  return start;
}

void check_path(const Plan& plan, const Trace& trace) {
  const std::vector<TaskId> path = critical_path(plan, trace);
  const std::vector<Picoseconds> slacks = slack(plan, trace);
  ASSERT_EQ(slacks.size(), plan.task_count());
  for (const Picoseconds s : slacks) ASSERT_GE(s, 0);
  Picoseconds time = 0, tasks = 0, host = 0;
  for (const TaskId t : path) {
    const Span& span = trace.spans[t];
    EXPECT_EQ(slacks[t], 0) << t;
    EXPECT_EQ(span.entered, span.matched) << t << " is not the end that came last";
    if (span.matched > time) {
      EXPECT_EQ(span.matched, span.issued) << t;
      EXPECT_EQ(host_busy_since(plan, trace, t, time), time) << t;
    }
    EXPECT_GE(span.matched, time) << t;
    host += span.matched - time;
    tasks += span.ended - span.matched;
    time = span.ended;
  }
  EXPECT_EQ(tasks + host, trace.step_time);
  EXPECT_EQ(time, trace.step_time);
}

TEST(CriticalPath, FollowsWithoutPauseAndFillsTheStep) {
  for (const std::string& strategy : small_strategies()) {
    const Plan plan = small_plan(strategy);
    for (const Picoseconds issue : kIssue) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        SCOPED_TRACE(strategy + " seed " + std::to_string(seed) + " issue " + std::to_string(issue));
        check_path(plan, simulate(plan, random_timing(plan, seed, issue)));
      }
    }
  }
}

TEST(CriticalPath, HasNoHostTimeWhenLaunchesAreFree) {
  const Plan plan = small_plan(small_strategies()[1]);
  const Trace trace = simulate(plan, random_timing(plan, 3, 0));
  Picoseconds sum = 0;
  for (const TaskId t : critical_path(plan, trace)) sum += trace.spans[t].ended - trace.spans[t].matched;
  EXPECT_EQ(sum, trace.step_time);
}

// Length of the step if one task, with a separate op, takes longer.
Picoseconds step_with_longer(Plan plan, Timing timing, TaskId task, Picoseconds by) {
  const std::uint32_t old = plan.tasks[task].op;
  plan.tasks[task].op = static_cast<std::uint32_t>(plan.ops.size());
  plan.ops.push_back(Op(plan.ops[old]));
  for (auto& row : timing.rows) {
    row.push_back(row[old]);
    row.back().duration += by;
  }
  return simulate(plan, timing).step_time;
}

TEST(Slack, IsExactlyWhatATaskMayGrowBy) {
  for (const std::string& strategy : small_strategies()) {
    const Plan plan = small_plan(strategy);
    for (const Picoseconds issue : kIssue) {
      const Timing timing = random_timing(plan, 7, issue);
      const Trace trace = simulate(plan, timing);
      const std::vector<Picoseconds> slacks = slack(plan, trace);
      for (std::uint64_t i = 0; i < 12; ++i) {
        auto t = static_cast<TaskId>(scrambled(1, i) % plan.task_count());
        // The engine takes a transfer's duration from its first member.
        if (plan.tasks[t].match != kNone) t = plan.members_of(plan.tasks[t].match).front();
        SCOPED_TRACE(strategy + " task " + std::to_string(t) + " " + plan.op_of(t).name);
        EXPECT_EQ(step_with_longer(plan, timing, t, slacks[t]), trace.step_time);
        EXPECT_EQ(step_with_longer(plan, timing, t, slacks[t] / 2), trace.step_time);
        EXPECT_EQ(step_with_longer(plan, timing, t, slacks[t] + 1), trace.step_time + 1);
      }
    }
  }
}

TEST(Slack, IsSharedByTheEndsOfATransfer) {
  const Plan plan = small_plan(small_strategies()[1]);
  const std::vector<Picoseconds> slacks = slack(plan, simulate(plan, random_timing(plan, 2, 1'000'000)));
  ASSERT_FALSE(plan.matches.empty());
  for (std::uint32_t m = 0; m < plan.matches.size(); ++m) {
    for (const TaskId t : plan.members_of(m)) EXPECT_EQ(slacks[t], slacks[plan.members_of(m).front()]);
  }
}

TEST(CriticalPath, OfAnEmptyPlanIsEmpty) {
  Plan plan;
  plan.tasks.emplace_back();  // the sentinel
  EXPECT_TRUE(critical_path(plan, {}).empty());
  EXPECT_TRUE(slack(plan, {}).empty());
}

// A kernel launched behind a kernel that waits in its stream waits too, though its own stream is free.
TEST(CriticalPath, GoesOverWhatHeldUpItsQueue) {
  TinyPlan p;
  const auto a = p.op("a", LaneKind::compute, {.duration = 10});
  const auto reduce = p.op("reduce", LaneKind::data_reduce, {.duration = 40});
  const auto last = p.op("last", LaneKind::compute, {.duration = 60});
  p.slot(0);
  p.task(reduce, {p.task(a)});
  p.task(reduce, {p.task(a)});
  p.task(last);
  p.finish();
  EXPECT_EQ(p.run().spans.back().ended, 80);
  p.timing().one_queue = true;
  EXPECT_EQ(timeline(p.plan(), p.run()),
            "slot 0 compute          a      issued   0 entered   0 matched   0 ended  10\n"
            "slot 0 data reduce      reduce issued   0 entered  10 matched  10 ended  50\n"
            "slot 0 compute          a      issued   0 entered  10 matched  10 ended  20\n"
            "slot 0 data reduce      reduce issued   0 entered  50 matched  50 ended  90\n"
            "slot 0 compute          last   issued   0 entered  50 matched  50 ended 110\n");
  // The last kernel waited for the first reduction, in another lane, which it does not need.
  const Trace trace = p.run();
  EXPECT_EQ(critical_path(p.plan(), trace), (std::vector<TaskId>{0, 1, 4}));
}

}  // namespace
}  // namespace orrery
