#include "sim/engine/contention.h"

#include <gtest/gtest.h>

#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

constexpr auto kAlone = Contention::kAlone;

Contention::Stretch settled(Contention& c, TaskId task) {
  for (const Contention::Change& change : c.settle()) {
    if (change.task == task) return change.stretch;
  }
  return 0;
}

// One rank: compute with half of the memory bandwidth, a transfer with a pressure of a quarter and 3/4 of the
// bandwidth.
TEST(Contention, ComputeAndTransfersOfARankSlowEachOther) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 100, .memory = kAlone / 2});
  const auto move =
      p.op("move", LaneKind::data_reduce, {.duration = 100, .pressure = kAlone / 4, .memory = kAlone / 4 * 3});
  p.slot(0);
  const TaskId a = p.task(work);
  const TaskId b = p.task(move);
  p.finish();
  const Plan plan = p.plan();
  const Timing timing = p.timing();
  Contention c(plan, timing);
  EXPECT_EQ(c.start_compute(a), kAlone);
  EXPECT_FALSE(c.unsettled());
  c.start_transfer({&b, 1});
  ASSERT_TRUE(c.unsettled());
  // Together they want 5/4 of the memory; compute has lost a fifth of its multiprocessors, which slows it no further.
  EXPECT_EQ(settled(c, a), kAlone / 4 * 5);
  c.stop_transfer({&b, 1});
  EXPECT_EQ(settled(c, a), kAlone);
}

// An event that changes no task's speed needs no new rates: transfers without pressure, within the memory's bandwidth.
TEST(Contention, IsSettledWhileNobodyIsSlowed) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 100, .memory = kAlone / 2});
  const auto move = p.op("move", LaneKind::data_reduce, {.duration = 100, .memory = kAlone / 2});
  const auto more = p.op("more", LaneKind::tensor, {.duration = 100, .memory = kAlone / 2});
  p.slot(0);
  const TaskId a = p.task(work);
  const TaskId b = p.task(move);
  const TaskId d = p.task(more);
  p.finish();
  const Plan plan = p.plan();
  const Timing timing = p.timing();
  Contention c(plan, timing);
  EXPECT_EQ(c.start_compute(a), kAlone);
  EXPECT_EQ(c.start_transfer({&b, 1}), kAlone);
  EXPECT_FALSE(c.unsettled());
  EXPECT_EQ(c.start_transfer({&d, 1}), kAlone / 2 * 3);
  ASSERT_TRUE(c.unsettled());
  EXPECT_EQ(settled(c, b), kAlone / 2 * 3);
  c.stop_compute(a);
  EXPECT_EQ(settled(c, d), kAlone);
  c.stop_transfer({&b, 1});
  EXPECT_FALSE(c.unsettled());
}

// A transfer with `yield` is slowed by compute of its rank, and only while both run: it is as fast as alone before and
// after, and compute that begins after its end finds no transfer to slow.
TEST(Contention, TransfersYieldToComputeAlone) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 100});
  const auto move = p.op("move", LaneKind::data_reduce, {.duration = 100, .yield = kAlone / 2});
  p.slot(0);
  const TaskId a = p.task(work);
  const TaskId b = p.task(move);
  const TaskId again = p.task(work);
  p.finish();
  const Plan plan = p.plan();
  const Timing timing = p.timing();
  Contention c(plan, timing);
  EXPECT_EQ(c.start_transfer({&b, 1}), kAlone);
  EXPECT_EQ(c.start_compute(a), kAlone);
  ASSERT_TRUE(c.unsettled());
  EXPECT_EQ(settled(c, b), kAlone / 2 * 3);
  c.stop_compute(a);
  ASSERT_TRUE(c.unsettled());
  EXPECT_EQ(settled(c, b), kAlone);
  c.stop_transfer({&b, 1});
  EXPECT_EQ(c.start_compute(again), kAlone);
  EXPECT_FALSE(c.unsettled());
}

// Two transfers that would each fill 3/4 of a port get half of it: each takes 1.5 times as long.
TEST(Contention, TransfersShareAPort) {
  TinyPlan p;
  const auto one = p.op("one", LaneKind::data_reduce, {.duration = 100, .nic = kFullRate / 4 * 3});
  const auto two = p.op("two", LaneKind::send_next, {.duration = 100, .nic = kFullRate / 4 * 3, .in = false});
  p.slot(0);
  const TaskId a = p.task(one);
  const TaskId b = p.task(two);
  p.finish();
  const Plan plan = p.plan();
  Timing timing = p.timing();
  timing.links = {{.nic_out = 0, .nic_in = 1}};
  timing.links[0].flows.fill(1);
  timing.link_count = 2;
  Contention c(plan, timing);
  EXPECT_EQ(c.start_transfer({&a, 1}), kAlone);
  EXPECT_FALSE(c.unsettled());
  EXPECT_EQ(c.start_transfer({&b, 1}), Contention::kUnsettled);
  EXPECT_NEAR(settled(c, a), 1.5 * kAlone, 1);
  c.stop_transfer({&b, 1});
  EXPECT_EQ(settled(c, a), kAlone);
}

// Two kinds of transfers that would each use three quarters of a leaf's uplinks take 3/2 of their time together.
TEST(Contention, TransfersOfAStageShareItsUplinks) {
  TinyPlan p;
  const auto experts = p.op("experts", LaneKind::expert, {.duration = 100, .uplink = kFullRate / 4 * 3});
  const auto sums = p.op("sums", LaneKind::data_reduce, {.duration = 100, .uplink = kFullRate / 4 * 3});
  p.slot(0);
  const TaskId a = p.task(experts);
  const TaskId b = p.task(sums);
  p.finish();
  const Plan plan = p.plan();
  Timing timing = p.timing();
  timing.links.resize(1);
  timing.links[0].uplinks[0].out = timing.link_count++;
  timing.links[0].uplinks[0].in = timing.link_count++;
  Contention c(plan, timing);
  EXPECT_EQ(c.start_transfer({&a, 1}), kAlone);
  EXPECT_EQ(c.start_transfer({&b, 1}), Contention::kUnsettled);
  EXPECT_NEAR(static_cast<double>(settled(c, b)), 1.5 * kAlone, 2);
  c.stop_transfer({&a, 1});
  EXPECT_EQ(settled(c, b), kAlone);
}

}  // namespace
}  // namespace orrery
