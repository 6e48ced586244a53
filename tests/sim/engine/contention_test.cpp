#include "sim/engine/contention.h"

#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/random_bits.h"
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

// Sixteen ranks, of which twelve share a NIC and the others another one; in eight transfers two ranks take part, one of
// each NIC; compute crowds memory and makes transfers yield.
struct Crowd {
  static constexpr std::uint32_t kRanks = 16;
  TinyPlan plan;
  std::vector<std::vector<TaskId>> transfers;
  std::vector<TaskId> computes;

  Crowd() {
    std::vector<TaskId> moves;
    const auto work = plan.op("work", LaneKind::compute, {.duration = 100, .memory = kAlone / 2});
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      const Rate share = r % 3 == 0 ? kFullRate / 4 * 3 : kFullRate;
      OpTiming timing{.duration = 100, .memory = r % 4 == 1 ? kAlone / 4 * 3 : 0, .nic = share};
      if (r % 5 == 2) timing.yield = kAlone / 2;
      const auto move = plan.op("move", LaneKind::data_reduce, timing);
      plan.slot(r);
      computes.push_back(plan.task(work));
      moves.push_back(plan.task(move));
    }
    for (std::uint32_t r = 0; r < 12; ++r) transfers.push_back({moves[r]});
    for (std::uint32_t r = 12; r < kRanks; ++r) {
      transfers[r - 12].push_back(moves[r]);
      plan.match(transfers[r - 12]);
    }
    plan.finish();
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      SlotLinks links;
      links.nic_out = r < 12 ? 0 : 2;
      links.nic_in = links.nic_out + 1;
      links.flows.fill(1);
      plan.timing().links.push_back(links);
    }
    plan.timing().link_count = 4;
  }
};

// The stretch of every task, as the changes say.
class Speeds {
 public:
  explicit Speeds(Contention& contention) : contention_(contention) {}
  void start(TaskId task, Contention::Stretch stretch) { said_[task] = {task, stretch}; }
  void settle() {
    if (!contention_.unsettled()) return;
    for (const Contention::Change& c : contention_.settle()) said_[c.task] = c;
    for (const Contention::ClockChange& c : contention_.clock_changes()) clocks_[c.clock] = c.stretch;
  }
  Contention::Stretch of(TaskId task) { return on_clock(task) ? clocks_[said_[task].clock] : said_[task].stretch; }
  bool on_clock(TaskId task) { return said_[task].clock != kNone; }

 private:
  Contention& contention_;
  std::map<TaskId, Contention::Change> said_;
  std::map<std::uint32_t, Contention::Stretch> clocks_;
};

TEST(Contention, ClocksOfCrowdedLinksSayWhatTheirTransfersWouldBeTold) {
  const Crowd crowd;
  const Timing timing = TinyPlan(crowd.plan).timing();
  Contention told(crowd.plan.plan(), timing), clocked(crowd.plan.plan(), timing, 3);
  Speeds expected(told), result(clocked);
  std::vector<bool> moving(crowd.transfers.size()), computing(crowd.computes.size());
  std::size_t on_clocks = 0, by_themselves = 0;
  for (std::uint64_t step = 0; step < 5000; ++step) {
    const std::uint64_t random = test::random_bits(step);
    const std::size_t i = random % crowd.transfers.size(), k = (random >> 8) % crowd.computes.size();
    const std::vector<TaskId>& members = crowd.transfers[i];
    if (random >> 16 & 1) {
      for (Contention* c : {&told, &clocked}) {
        Speeds& speeds = c == &told ? expected : result;
        if (moving[i])
          c->stop_transfer(members);
        else
          speeds.start(members.front(), c->start_transfer(members));
      }
      moving[i] = !moving[i];
    } else {
      for (Contention* c : {&told, &clocked}) {
        Speeds& speeds = c == &told ? expected : result;
        if (computing[k])
          c->stop_compute(crowd.computes[k]);
        else
          speeds.start(crowd.computes[k], c->start_compute(crowd.computes[k]));
      }
      computing[k] = !computing[k];
    }
    if (random >> 20 & 1) continue;
    expected.settle();
    result.settle();
    for (std::size_t t = 0; t < crowd.transfers.size(); ++t) {
      const TaskId lead = crowd.transfers[t].front();
      if (!moving[t]) continue;
      ASSERT_EQ(result.of(lead), expected.of(lead)) << "step " << step << ", transfer " << t;
      ++(result.on_clock(lead) ? on_clocks : by_themselves);
    }
    for (std::size_t c = 0; c < computing.size(); ++c) {
      if (!computing[c]) continue;
      ASSERT_EQ(result.of(crowd.computes[c]), expected.of(crowd.computes[c])) << "step " << step;
    }
  }
  EXPECT_GT(on_clocks, 1000U);
  EXPECT_GT(by_themselves, 1000U);
}

}  // namespace
}  // namespace orrery
