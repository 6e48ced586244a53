#include "sim/whatif/step_graph.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

MeasuredOp op(std::int32_t worker, std::int32_t lane, double begin, double end, std::int64_t group = -1) {
  MeasuredOp o{.worker = worker, .lane = lane};
  o.group = group;
  o.begin = begin;
  o.end = end;
  return o;
}

double step_of(const StepGraph& g) {
  return replayed(
      g, [](const RunNode& n) { return n.time; }, [](const RunNode& n) { return n.gap; });
}

TEST(StepGraph, AnOpWaitsForItsLaneAndForWhatHasEndedBeside) {
  MeasuredRun run;
  run.op("work", false);
  run.operations = {op(0, 0, 0, 1), op(0, 0, 1, 3), op(0, 1, 0.5, 2.5), op(0, 1, 3.5, 4)};
  const std::vector<StepGraph> graphs = step_graphs(run);
  ASSERT_EQ(graphs.size(), 1U);
  const std::vector<RunNode>& n = graphs[0].nodes;
  ASSERT_EQ(n.size(), 4U);
  EXPECT_TRUE(n[0].after.empty());
  EXPECT_TRUE(n[1].after.empty());  // began while the first one ran
  EXPECT_EQ(n[2].after, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(n[3].after, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_DOUBLE_EQ(n[3].gap, 0.5);
  EXPECT_DOUBLE_EQ(graphs[0].time, 4);
  EXPECT_DOUBLE_EQ(step_of(graphs[0]), 4);
}

TEST(StepGraph, ATransferBeginsWithItsLastRank) {
  MeasuredRun run;
  run.op("work", false);
  run.operations = {op(0, 0, 0, 1), op(1, 0, 0, 3), op(0, 1, 1, 4, 7), op(1, 1, 3, 4, 7)};
  const StepGraph g = step_graphs(run)[0];
  ASSERT_EQ(g.nodes.size(), 3U);
  EXPECT_DOUBLE_EQ(g.nodes[2].begin, 3);
  EXPECT_DOUBLE_EQ(g.nodes[2].time, 1);
  EXPECT_DOUBLE_EQ(g.nodes[2].waited, 2);
  EXPECT_EQ(g.nodes[2].after, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(g.nodes[2].ranks.size(), 2U);
}

// Two lanes disagree by less than 0.1 ms about the moment at which one of them waits for the other.
TEST(StepGraph, ClocksOfLanesMayDisagreeALittle) {
  MeasuredRun run;
  run.op("work", false);
  run.operations = {op(0, 0, 0, 1), op(0, 1, 1 - 5e-5, 2), op(0, 2, 1 - 5e-4, 2)};
  const StepGraph g = step_graphs(run)[0];
  EXPECT_TRUE(g.nodes[1].after.empty());
  EXPECT_EQ(g.nodes[2].after, (std::vector<std::uint32_t>{0}));
}

TEST(StepGraph, OnlyItsOwnLaneWaitsForASend) {
  MeasuredRun run;
  run.op("work", false);
  run.operations = {op(0, 1, 0, 0.5), op(0, 1, 0.5, 1), op(0, 1, 1, 1.5), op(0, 0, 2, 3)};
  run.operations[1].aside = true;
  const StepGraph g = step_graphs(run)[0];
  EXPECT_EQ(g.nodes[2].after, (std::vector<std::uint32_t>{1}));
  run.operations[2].aside = true;
  EXPECT_EQ(step_graphs(run)[0].nodes[3].after, (std::vector<std::uint32_t>{0}));
}

// The test takes far longer if every op goes back over all sends before it.
TEST(StepGraph, ManySendsTakeNoTimeOfOtherLanes) {
  constexpr int kOps = 100'000;
  MeasuredRun run;
  run.op("work", false);
  for (int i = 0; i < kOps; ++i) {
    run.operations.push_back(op(0, 1, i, i + 1));
    run.operations.back().aside = true;
  }
  for (int i = 0; i < kOps; ++i) run.operations.push_back(op(0, 0, kOps + i, kOps + i + 1));
  const StepGraph g = step_graphs(run)[0];
  EXPECT_TRUE(g.nodes[kOps].after.empty());
  EXPECT_EQ(g.nodes.back().after, (std::vector<std::uint32_t>{2 * kOps - 2}));
}

TEST(StepGraph, NoOpNeedsOneOfAnotherStep) {
  MeasuredRun run;
  run.op("work", false);
  run.operations = {op(0, 0, 0, 1), op(0, 0, 1, 2), op(0, 0, 3, 4)};
  run.operations[1].step = 1;
  run.operations[2].needs = 1;
  EXPECT_THROW(step_graphs(run), std::out_of_range);
}

}  // namespace
}  // namespace orrery
