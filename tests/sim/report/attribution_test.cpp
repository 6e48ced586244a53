#include "sim/report/attribution.h"

#include <map>
#include <numeric>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

using Split = std::map<std::string, Picoseconds>;

// The nonzero shares in the attribution of a slot's time.
Split split_of(const TinyPlan& p, std::size_t slot = 0) {
  const Trace trace = p.run();
  const Attribution a = attribute(p.plan(), trace);
  Split split;
  for (int k = 0; k < kTimeKinds; ++k) {
    if (a.by_slot[slot][k] != 0) split[std::string(name_of(static_cast<TimeKind>(k)))] = a.by_slot[slot][k];
  }
  return split;
}

TEST(Attribution, BusyKinds) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 10});
  const auto again = p.op("again", LaneKind::compute, {.duration = 4});
  const auto update = p.op("update", LaneKind::compute, {.duration = 3});
  p.change(again).recompute = true;
  p.change(update).optimizer = true;
  p.slot(0);
  for (const auto op : {work, again, work, update}) p.task(op);
  p.finish();
  EXPECT_EQ(split_of(p), (Split{{"compute", 20}, {"recompute", 4}, {"optimizer", 3}}));
}

// A gap under one transfer goes to the transfer's group, lane by lane.
TEST(Attribution, GapsUnderTransfers) {
  const std::pair<LaneKind, std::string> kinds[] = {{LaneKind::tensor, "exposed_tensor"},
                                                    {LaneKind::context, "exposed_context"},
                                                    {LaneKind::expert, "exposed_expert"},
                                                    {LaneKind::data_reduce, "exposed_data"},
                                                    {LaneKind::data_gather, "exposed_data"},
                                                    {LaneKind::replicate, "exposed_data"},
                                                    {LaneKind::send_next, "exposed_pipeline"},
                                                    {LaneKind::receive_previous, "exposed_pipeline"},
                                                    {LaneKind::send_previous, "exposed_pipeline"},
                                                    {LaneKind::receive_next, "exposed_pipeline"},
                                                    {LaneKind::embedding, "exposed_pipeline"},
                                                    {LaneKind::model, "exposed_data"},
                                                    {LaneKind::d2h, "offload"},
                                                    {LaneKind::h2d, "offload"},
                                                    {LaneKind::cpu, "offload"}};
  for (const auto& [lane, kind] : kinds) {
    TinyPlan p;
    const auto work = p.op("work", LaneKind::compute, {.duration = 10});
    const auto move = p.op("move", lane, {.duration = 7});
    p.slot(0);
    p.task(work, {p.task(move, {p.task(work)})});
    p.finish();
    EXPECT_EQ(split_of(p), (Split{{"compute", 20}, {kind, 7}})) << name_of(lane);
  }
}

// A reduction under backward is exposed only as far as it outlasts it.
TEST(Attribution, OverlappedTransferCountsWhereItSticksOut) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 10});
  const auto reduce = p.op("reduce", LaneKind::data_reduce, {.duration = 17});
  const auto update = p.op("update", LaneKind::compute, {.duration = 2});
  p.change(update).optimizer = true;
  p.slot(0);
  const TaskId moved = p.task(reduce, {p.task(work)});
  p.task(work);
  p.task(update, {moved});
  p.finish();
  EXPECT_EQ(split_of(p), (Split{{"compute", 20}, {"exposed_data", 7}, {"optimizer", 2}}));
}

// Two transfers one after another, of two groups: each its own part of the gap.
TEST(Attribution, GapIsSharedMomentByMoment) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 10});
  const auto gather = p.op("gather", LaneKind::data_gather, {.duration = 5});
  const auto sum = p.op("sum", LaneKind::tensor, {.duration = 3});
  p.slot(0);
  p.task(work, {p.task(sum, {p.task(gather, {p.task(work)})})});
  p.finish();
  EXPECT_EQ(split_of(p), (Split{{"compute", 20}, {"exposed_data", 5}, {"exposed_tensor", 3}}));
}

// Stage 1 waits for the transfer (exposed) and, before it, for stage 0's compute (bubble). Stage 0 has nothing to do
// while stage 1 ends the step.
TEST(Attribution, BubbleAndExposedPipeline) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 30});
  const auto send = p.op("send", LaneKind::send_next, {.duration = 4});
  const auto receive = p.op("receive", LaneKind::receive_previous, {.duration = 4});
  p.slot(0);
  const TaskId out = p.task(send, {p.task(work)});
  p.slot(1);
  const TaskId in = p.task(receive);
  p.task(work, {in});
  p.match({out, in});
  p.finish();
  EXPECT_EQ(split_of(p, 0), (Split{{"compute", 30}, {"bubble", 34}}));
  EXPECT_EQ(split_of(p, 1), (Split{{"compute", 30}, {"exposed_pipeline", 4}, {"bubble", 30}}));
}

// A slower rank of the same stage holds up the others' all-reduce.
TEST(Attribution, Imbalance) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 10});
  const auto slow = p.op("slow", LaneKind::compute, {.duration = 16});
  const auto sum = p.op("sum", LaneKind::tensor, {.duration = 5});
  p.slot(0);
  const TaskId a = p.task(sum, {p.task(work)});
  p.task(work, {a});
  p.slot(0);
  const TaskId b = p.task(sum, {p.task(slow)});
  p.task(work, {b});
  p.match({a, b});
  p.finish();
  EXPECT_EQ(split_of(p, 0), (Split{{"compute", 20}, {"exposed_tensor", 5}, {"imbalance", 6}}));
  EXPECT_EQ(split_of(p, 1), (Split{{"compute", 26}, {"exposed_tensor", 5}}));
}

TEST(Attribution, SlowHostIsLaunch) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 2, .issue = 5});
  p.slot(0);
  for (int i = 0; i < 3; ++i) p.task(work);
  p.finish();
  EXPECT_EQ(split_of(p), (Split{{"compute", 6}, {"launch", 11}}));
}

// The host waits for a transfer and only then issues: the wait is the transfer's, the issuing is launch.
TEST(Attribution, HostWaitsForTransfer) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 10, .issue = 1});
  const auto move = p.op("move", LaneKind::data_gather, {.duration = 7, .issue = 1});
  const auto wait = p.op("wait", LaneKind::compute, {.duration = 2, .issue = 3});
  p.change(wait).host_waits = true;
  p.slot(0);
  p.task(wait, {p.task(move, {p.task(work)})});
  p.finish();
  EXPECT_EQ(split_of(p), (Split{{"compute", 12}, {"launch", 4}, {"exposed_data", 7}}));
}

// The event happened before the host came to wait for it: all the time counts as issuing.
TEST(Attribution, LateHostIsLaunchAcrossItsWaits) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 2, .issue = 1});
  const auto copy = p.op("copy", LaneKind::tensor, {.duration = 1, .issue = 30});
  const auto wait = p.op("wait", LaneKind::compute, {.duration = 4, .issue = 3});
  p.change(wait).host_waits = true;
  p.slot(0);
  const TaskId first = p.task(work);
  p.task(copy);
  p.task(wait, {first});
  p.finish();
  EXPECT_EQ(split_of(p), (Split{{"compute", 6}, {"launch", 32}}));
}

TEST(Attribution, ExposedTimeOfOpsSumsUpToTheSlots) {
  TinyPlan p;
  const auto work = p.op("work", LaneKind::compute, {.duration = 10});
  const auto gather = p.op("gather", LaneKind::data_gather, {.duration = 5});
  const auto sum = p.op("sum", LaneKind::tensor, {.duration = 3});
  p.slot(0, 4);
  p.task(work, {p.task(sum, {p.task(gather, {p.task(work)})})});
  p.finish();
  const Attribution a = attribute(p.plan(), p.run());
  EXPECT_EQ(a.exposed_by_op[gather], 20);
  EXPECT_EQ(a.exposed_by_op[sum], 12);
}

// Plans of random tasks on random lanes of a few slots, with transfers between slots, host waits, pressure and slow
// hosts. Drawn in one global order, so that nothing can wait in a circle.
class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t seed) : random_(seed), slots_(1 + below(4)) {
    const std::int64_t slow_host = below(3) == 0 ? 40 : 4;
    for (int i = 0; i < 12; ++i) {
      const bool compute = i < 5;
      const auto lane = compute ? LaneKind::compute : static_cast<LaneKind>(1 + below(kLanes - 1));
      const auto op = plan.op(fmt::format("op {}", i), lane,
                              {.duration = below(60), .issue = below(slow_host), .pressure = compute ? 0 : pressure()});
      plan.change(op).host_waits = below(5) == 0;
      plan.change(op).recompute = compute && below(4) == 0;
    }
    std::vector<std::vector<Draft>> drafts(slots_);
    for (int i = 0; i < 60; ++i) draw(drafts);
    lay(drafts);
  }

  TinyPlan plan;

 private:
  struct Draft {
    std::uint32_t op;
    std::vector<std::size_t> after;  // places in the same slot
    int match = -1;
  };

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  std::uint32_t pressure() { return below(2) == 0 ? 0 : static_cast<std::uint32_t>(below(40000)); }

  void draw(std::vector<std::vector<Draft>>& drafts) {
    const auto op = static_cast<std::uint32_t>(below(12));
    const bool many = op >= 5 && slots_ > 1 && below(2) == 0;
    const int match = many ? matches_++ : -1;
    const std::int64_t only = below(slots_);
    for (std::int64_t s = 0; s < slots_; ++s) {
      if (!many && s != only) continue;
      Draft draft{op, {}, match};
      for (std::int64_t d = below(3); d > 0 && !drafts[s].empty(); --d) {
        draft.after.push_back(static_cast<std::size_t>(below(static_cast<std::int64_t>(drafts[s].size()))));
      }
      drafts[s].push_back(draft);
    }
  }

  void lay(const std::vector<std::vector<Draft>>& drafts) {
    std::vector<std::vector<TaskId>> members(matches_);
    for (std::int64_t s = 0; s < slots_; ++s) {
      plan.slot(s / 2, 1 + below(3));
      std::vector<TaskId> ids;
      for (const Draft& draft : drafts[s]) {
        std::vector<TaskId> after;
        for (const std::size_t place : draft.after) after.push_back(ids[place]);
        ids.push_back(plan.task(draft.op, after));
        if (draft.match >= 0) members[draft.match].push_back(ids.back());
      }
    }
    for (const auto& m : members) plan.match(m);
    plan.finish();
  }

  std::mt19937_64 random_;
  std::int64_t slots_;
  int matches_ = 0;
};

TEST(Attribution, EverySlotSumsUpToTheStepToThePicosecond) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const RandomPlan p(seed);
    const Trace trace = p.plan.run();
    const Attribution a = attribute(p.plan.plan(), trace);
    Picoseconds exposed = 0, by_op = 0;
    for (std::size_t s = 0; s < a.by_slot.size(); ++s) {
      const auto& split = a.by_slot[s];
      ASSERT_EQ(std::accumulate(split.begin(), split.end(), Picoseconds{0}), trace.step_time) << "seed " << seed;
      for (const Picoseconds t : split) ASSERT_GE(t, 0) << "seed " << seed;
      for (int k = static_cast<int>(TimeKind::exposed_tensor); k <= static_cast<int>(TimeKind::offload); ++k)
        exposed += split[k] * p.plan.plan().classes[s].multiplicity;
    }
    for (const Picoseconds t : a.exposed_by_op) by_op += t;
    ASSERT_EQ(by_op, exposed) << "seed " << seed;
  }
}

// Faster links never make a step slower, as long as transfers do not slow compute down.
TEST(Attribution, FasterTransfersNeverHurt) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    RandomPlan p(seed);
    for (OpTiming& t : p.plan.timing().rows[0]) t.pressure = 0;
    const Picoseconds before = p.plan.run().step_time;
    for (std::uint32_t op = 5; op < 12; ++op) p.plan.cost(op).duration /= 2;
    ASSERT_LE(p.plan.run().step_time, before) << "seed " << seed;
  }
}

// Without launch costs nothing is charged to launch unless a host waits.
TEST(Attribution, FreeIssueLeavesNoLaunch) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    RandomPlan p(seed);
    for (OpTiming& t : p.plan.timing().rows[0]) t.issue = 0;
    const Attribution a = attribute(p.plan.plan(), p.plan.run());
    for (const auto& split : a.by_slot) ASSERT_EQ(split[static_cast<std::size_t>(TimeKind::launch)], 0) << seed;
  }
}

}  // namespace
}  // namespace orrery
