#include "viz/predicted/step.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "viz/draw/area.h"
#include "viz/timeline/runs.h"

using namespace orrery;

namespace {

const StepTimeline& example() {
  static const StepTimeline s =
      timeline_of(predict_step(load_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml")));
  return s;
}

}  // namespace

TEST(Step, EveryTaskIsAnEventAtItsTime) {
  const StepTimeline& s = example();
  const Plan& plan = s.step->prediction.plan;
  const Trace& trace = s.step->prediction.trace;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const EventId e = s.event_of_task[t];
    ASSERT_NE(e, kNoEvent);
    EXPECT_EQ(s.timeline.begins[e], trace.spans[t].matched);
    EXPECT_EQ(s.timeline.ends[e], trace.spans[t].ended);
    EXPECT_EQ(s.timeline.name(e), plan.op_of(t).name);
  }
  EXPECT_EQ(s.timeline.processes.size(), plan.classes.size());
  EXPECT_EQ(s.timeline.processes[1].coordinates[2], 1);
}

TEST(Step, DetailsSayWhatAndWhy) {
  const StepTimeline& s = example();
  bool waited = false;
  for (EventId e = 0; e < s.timeline.events(); e += 7) {
    const Details d = details_of(s.timeline, e);
    EXPECT_FALSE(detail_named(d, "op").empty());
    EXPECT_FALSE(detail_named(d, "began when").empty());
    if (communicates(s.timeline.kind(e))) {
      EXPECT_FALSE(detail_named(d, "algorithm").empty());
    }
    waited |= !detail_named(d, "waited").empty();
  }
  EXPECT_TRUE(waited);
}

TEST(Step, BothEndsOfAMessageAreItsMembers) {
  const StepTimeline& s = example();
  const Plan& plan = s.step->prediction.plan;
  for (std::uint32_t m = 0; m < plan.matches.size(); ++m) {
    const auto members = plan.members_of(m);
    EXPECT_EQ(members_of(s.timeline, s.event_of_task[members[0]]).size(), members.size());
  }
}

TEST(Step, CriticalPathFillsTheStep) {
  const StepTimeline& s = example();
  const CriticalPath c = critical_path_of(s);
  ASSERT_FALSE(c.path.empty());
  for (const EventId e : c.path) EXPECT_EQ(c.slack[e], 0);
  for (std::size_t i = 1; i < c.path.size(); ++i) EXPECT_LE(s.timeline.ends[c.path[i - 1]], s.timeline.ends[c.path[i]]);
}

TEST(Step, AreaSumsAgreeWithTheReport) {
  const StepTimeline& s = example();
  const AreaIndex index(s.timeline);
  double compute = 0, ranks = 0;
  for (std::uint32_t p = 0; p < s.timeline.processes.size(); ++p) {
    const auto n = static_cast<double>(s.timeline.processes[p].ranks);
    compute += n * seconds(index.sums(s.timeline, p, 0, s.timeline.end).compute);
    ranks += n;
  }
  const TimeSplit& t = s.step->prediction.report.time_s;
  const double busy = t[static_cast<std::size_t>(TimeKind::compute)] +
                      t[static_cast<std::size_t>(TimeKind::recompute)] +
                      t[static_cast<std::size_t>(TimeKind::optimizer)];
  EXPECT_NEAR(compute / ranks, busy, 1e-6 * busy);
}

TEST(Step, RunsCountEveryMicroBatchBothWays) {
  const StepTimeline& s = example();
  for (const Track& track : s.timeline.tracks) {
    if (track.name != "compute") continue;
    std::vector<int> forward(8), backward(8);
    for (const auto& r : runs_of(s.timeline, track))
      ++(r.kind == Kind::forward ? forward : backward)[static_cast<std::size_t>(r.micro_batch)];
    for (int m = 0; m < 8; ++m) {
      EXPECT_GE(forward[static_cast<std::size_t>(m)], 1);
      EXPECT_GE(backward[static_cast<std::size_t>(m)], 1);
    }
  }
}

// A rank is named with its index in every group of more than one rank, a class of ranks by its stage.
TEST(Step, SingleRanksAreNamedByTheirCoordinates) {
  const auto step = predict_step(load_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml"),
                                 {.overrides = {}, .profile = "", .unfold = true});
  const Timeline unfolded = timeline_of(step).timeline;
  ASSERT_EQ(unfolded.processes.size(), 64U);
  EXPECT_EQ(unfolded.processes[0].name, "rank 0 (DP0 TP0 PP0)");
  EXPECT_EQ(unfolded.processes[43].name, "rank 43 (DP1 TP3 PP1)");
  EXPECT_EQ(example().timeline.processes[1].name, "stage 1 (rank 32, x32)");
}

TEST(Step, RanksThatShareOutExpertsHaveAnExpertCoordinate) {
  EXPECT_EQ(example().timeline.processes[0].coordinates[4], -1);
  const StepTimeline s =
      timeline_of(predict_step(load_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/deepseek-v3-2048.yaml")));
  for (const Process& p : s.timeline.processes) {
    EXPECT_GE(p.coordinates[4], 0);
    EXPECT_LT(p.coordinates[4], s.step->spec.strategy.expert);
  }
}
