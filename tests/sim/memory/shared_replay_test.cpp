// Classes of ranks that share one replay of allocations, against replays of their own.
#include "sim/memory/shared_replay.h"

#include <gtest/gtest.h>

#include "models/plan/unfold.h"
#include "sim/cost/costs.h"
#include "sim/engine/simulate.h"
#include "sim/memory/replay.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::spec_of;

const char* const kReplayedModel =
    "name: m, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 1024, gated: false, positions: learned";

void expect_equal(const SlotMemory& a, const SlotMemory& b) {
  EXPECT_EQ(a.first_step_peak, b.first_step_peak);
  EXPECT_EQ(a.peak, b.peak);
  EXPECT_EQ(a.peak_reserved, b.peak_reserved);
  EXPECT_EQ(a.update_reserved, b.update_reserved);
  EXPECT_EQ(a.at_peak, b.at_peak);
  EXPECT_EQ(a.peak_task, b.peak_task);
  EXPECT_EQ(a.peak_step, b.peak_step);
  EXPECT_EQ(a.alive, b.alive);
  EXPECT_EQ(a.retries, b.retries);
  EXPECT_EQ(a.device_calls, b.device_calls);
  EXPECT_EQ(a.out_of_memory, b.out_of_memory);
  EXPECT_EQ(a.tier_peak, b.tier_peak);
}

// Replays with a memory curve are never shared, so they are what shared ones must equal.
void expect_shared_equal(const Plan& plan, const Spec& spec, const MemoryOptions& options) {
  const Trace trace = simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing);
  std::vector<MemoryCurve> curves;
  const std::vector<SlotMemory> shared = replay_memory(plan, trace, options);
  const std::vector<SlotMemory> own = replay_memory(plan, trace, options, &curves);
  ASSERT_EQ(shared.size(), own.size());
  for (std::size_t s = 0; s < own.size(); ++s) expect_equal(shared[s], own[s]);
}

TEST(SharedReplay, EqualsAReplayOfEachClass) {
  const char* const strategies[] = {"tensor: 2, pipeline: 2, data: 4, global_batch: 16, sharding: zero1",
                                    "pipeline: 4, data: 4, global_batch: 32, schedule: gpipe",
                                    "tensor: 2, data: 4, global_batch: 16, sharding: zero3",
                                    "pipeline: 2, virtual_stages: 2, data: 4, sharding: zero2, global_batch: 16"};
  for (const char* strategy : strategies) {
    for (const double slow : {1.0001, 1.2, 3.0}) {
      Spec spec = spec_of(kReplayedModel, strategy, 512);
      spec.cluster.stragglers = {{3, slow}};
      const Plan plan = make_plan(spec);
      for (const Bytes room : {Bytes{1} << 50, Bytes{200} << 20}) {
        MemoryOptions options{.capacity = room, .workspace = 32 << 20, .collectives_hold_tensors = slow > 2};
        expect_shared_equal(plan, spec, options);
        options.host_part = 0.5;
        options.filling_part = 0.25;
        options.moments_by_weight = options.gradients_by_weight = options.gathers_lists = true;
        options.flat_copies = 1;
        options.flat_copy = 1 << 20;
        expect_shared_equal(plan, spec, options);
      }
      if (slow == 1.2) expect_shared_equal(unfold(plan), spec, {.capacity = Bytes{1} << 50});
    }
  }
}

// Three of four alike data ranks share the replay of the first.
TEST(SharedReplay, KnowsEqualPlans) {
  const Plan plan = unfold(make_plan(spec_of(kReplayedModel, "pipeline: 2, data: 4, global_batch: 16", 512)));
  std::vector<std::vector<std::uint32_t>> frames(plan.classes.size());
  for (std::uint32_t f = 0; f < plan.frames.size(); ++f) frames[plan.frames[f].slot].push_back(f);
  for (std::uint32_t a = 0; a < plan.classes.size(); ++a) {
    for (std::uint32_t b = a + 1; b < plan.classes.size(); ++b)
      EXPECT_EQ(equal_plans(plan, a, b, frames), plan.classes[a].stage == plan.classes[b].stage);
  }
}

// A block that waits for an event is free before the first request after the event, whatever the times between are.
TEST(SharedReplay, HoldsWhereEventsEndBetweenTheSameRequests) {
  const Spec spec = spec_of(kReplayedModel, "data: 2, global_batch: 2", 512);
  const Plan plan = make_plan(spec);
  Trace trace = simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing);
  const MemoryOptions options;
  const auto at = [&](TaskId t, Picoseconds issued, Picoseconds ended) {
    trace.spans[t].issued = issued;
    trace.spans[t].ended = ended;
  };
  at(0, 10, 25), at(1, 20, 30), at(2, 30, 40);
  ReplayMoments moments;
  moments.request(0, kNone, false, 0);
  moments.wait(0, 0, kNone, 0);
  moments.request(1, kNone, false, 0);
  moments.request(2, kNone, false, 0);
  ASSERT_TRUE(moments.close(HostTimes(plan, trace, options, 0), trace, 0));
  const auto same = [&](Picoseconds ended) {
    at(0, 10, ended);
    return moments.same_for(HostTimes(plan, trace, options, 0), trace, 0);
  };
  EXPECT_TRUE(same(21));
  EXPECT_TRUE(same(30));
  EXPECT_FALSE(same(20)) << "free one request earlier";
  EXPECT_FALSE(same(31)) << "free after the last request";
  EXPECT_FALSE(same(0));
  at(0, 40, 25), at(1, 20, 30);
  EXPECT_TRUE(moments.same_for(HostTimes(plan, trace, options, 0), trace, 0)) << "a late request before the free";
}

}  // namespace
}  // namespace orrery
