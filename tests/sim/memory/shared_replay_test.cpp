// Classes of ranks that share one replay of allocations, against replays of their own.
#include "sim/memory/shared_replay.h"

#include <algorithm>
#include <vector>

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

// Replays with a memory curve are never shared, so they are what shared ones must equal. Returns the memory of the
// classes that share another's replay.
std::vector<SlotMemory> expect_shared_equal(const Plan& plan, const Spec& spec, const MemoryOptions& options) {
  const Trace trace = simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing);
  std::vector<MemoryCurve> curves;
  std::vector<SlotMemory> shared = replay_memory(plan, trace, options);
  const std::vector<SlotMemory> own = replay_memory(plan, trace, options, &curves);
  EXPECT_EQ(shared.size(), own.size());
  for (std::size_t s = 0; s < own.size(); ++s) {
    expect_equal(shared[s], own[s]);
    EXPECT_EQ(own[s].replay_of, kNone);
    if (shared[s].replay_of != kNone) {
      EXPECT_EQ(plan.classes[shared[s].replay_of].stage, plan.classes[s].stage);
    }
  }
  std::erase_if(shared, [](const SlotMemory& m) { return m.replay_of == kNone; });
  return shared;
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

// A slow rank splits each of two stages into four classes. Tensor ranks of a replica that are not slow themselves wait
// for the same things, and share a replay; replicas end at other times. So it is where requests are retried after
// cached memory was given back, too.
TEST(SharedReplay, TensorRanksOfStragglersShare) {
  Spec spec = spec_of(kReplayedModel, "tensor: 4, pipeline: 2, data: 2, micro_batch: 4, global_batch: 32", 2048);
  spec.cluster.stragglers = {{5, 1.2}};
  const Plan plan = make_plan(spec);
  ASSERT_EQ(plan.classes.size(), 8U);
  MemoryOptions options{
      .capacity = Bytes{1} << 50, .collectives_hold_tensors = true, .moments_by_weight = true, .host_part = 0.1};
  const auto retried = [](const SlotMemory& m) { return m.retries > 0 && !m.out_of_memory; };
  const std::vector<SlotMemory> roomy = expect_shared_equal(plan, spec, options);
  EXPECT_EQ(roomy.size(), 5U);
  EXPECT_EQ(std::ranges::count_if(roomy, retried), 0);
  options.capacity = roomy.front().peak_reserved / 100 * 85;
  const std::vector<SlotMemory> full = expect_shared_equal(plan, spec, options);
  EXPECT_EQ(full.size(), 5U);
  EXPECT_EQ(std::ranges::count_if(full, retried), 5);
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

}  // namespace
}  // namespace orrery
