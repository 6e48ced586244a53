// States that a stack keeps as one tensor per weight, and the copies that it makes of them at the end of a step.
#include "sim/memory/state_tensors.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "sim/cost/costs.h"
#include "sim/engine/simulate.h"
#include "sim/memory/replay.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::spec_of;

constexpr Bytes kRoom = Bytes{1} << 50;

SlotMemory replay(const Spec& spec, const MemoryOptions& options) {
  const Plan plan = make_plan(spec);
  return replay_memory(plan, simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing), options)
      .front();
}

const char* const kStatesModel =
    "name: m, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 1024, gated: false, positions: learned";

double weights(const Spec& spec) { return static_cast<double>(parameter_count(spec.model, spec.sequence)); }

double bytes_of(const SlotMemory& m, Category c) { return static_cast<double>(m.at_peak[static_cast<std::size_t>(c)]); }

struct Recorder : BlockSource {
  BlockId take(Bytes bytes, Category category, Picoseconds) override {
    EXPECT_EQ(category, Category::optimizer);
    taken.push_back(bytes);
    return static_cast<BlockId>(taken.size());
  }
  void give(BlockId, Category) override { FAIL(); }
  Bytes size(BlockId) const override { return 0; }
  std::vector<Bytes> taken;
};

// torch.optim's: a weight's two moments one after the other, in the order of weights; of shards, their part of each.
TEST(StateTensors, MomentsOfEveryWeight) {
  for (const int data : {1, 4}) {
    const Spec spec = spec_of(kStatesModel, fmt::format("data: {}, sharding: zero1, global_batch: 4", data), 128);
    const Plan plan = make_plan(spec);
    std::vector<std::uint32_t> frames(plan.frames.size());
    std::iota(frames.begin(), frames.end(), 0U);
    const auto state = std::find_if(frames.begin(), frames.end(), [&](std::uint32_t f) {
      return plan.blocks[plan.frames[f].block].role == BlockRole::state;
    });
    Recorder recorder;
    StateTensors states(plan, frames, true, false, recorder);
    ASSERT_TRUE(states.has_moments(*state));
    states.take_moments(*state, 0);
    EXPECT_FALSE(states.has_gradients());
    ASSERT_GT(recorder.taken.size(), 2 * 8 * 4);
    for (std::size_t i = 0; i < recorder.taken.size(); i += 2) EXPECT_EQ(recorder.taken[i], recorder.taken[i + 1]);
    EXPECT_EQ(recorder.taken.front(), 1024 * 512 * 4 / data);  // the token-embedding table
    const double sum = std::accumulate(recorder.taken.begin(), recorder.taken.end(), 0.0);
    EXPECT_NEAR(sum / (8 * weights(spec) / data), 1, 0.01);
  }
}

// Moments allocated by weight take as much memory as flat ones, up to the allocator's rounding.
TEST(StateTensors, MomentsByWeightAddUp) {
  const Spec spec = spec_of(kStatesModel, "global_batch: 4, micro_batch: 4", 512);
  const SlotMemory flat = replay(spec, {.capacity = kRoom});
  const SlotMemory by_weight = replay(spec, {.capacity = kRoom, .moments_by_weight = true});
  EXPECT_NEAR(bytes_of(by_weight, Category::optimizer) / bytes_of(flat, Category::optimizer), 1, 0.03);
  EXPECT_NE(by_weight.peak_reserved, flat.peak_reserved);
}

// Adafactor has no first moments; its sums, alone in the states of fp32 weights, are allocated with every stack. The
// sums of one weight are few, so the allocator's rounding is a large part of them.
TEST(StateTensors, SumsOfRowsAndColumnsByWeight) {
  const Spec spec = spec_of(kStatesModel, "global_batch: 4, precision: fp32, optimizer: adafactor", 512);
  const SlotMemory flat = replay(spec, {.capacity = kRoom});
  const SlotMemory by_weight = replay(spec, {.capacity = kRoom, .moments_by_weight = true});
  EXPECT_GT(bytes_of(flat, Category::optimizer), 0);
  EXPECT_NEAR(bytes_of(by_weight, Category::optimizer) / bytes_of(flat, Category::optimizer), 1, 0.1);
}

// With DeepSpeed the first step needs no less memory than the second.
TEST(StateTensors, MomentsBeforeTheFirstStep) {
  const Spec spec = spec_of(kStatesModel, "global_batch: 16, micro_batch: 16", 512);
  const SlotMemory late = replay(spec, {.capacity = kRoom});
  const SlotMemory early = replay(spec, {.capacity = kRoom, .moments_at_start = true});
  EXPECT_GT(late.peak, late.first_step_peak);
  EXPECT_EQ(early.peak, early.first_step_peak);
  EXPECT_EQ(early.peak, late.peak);
}

// Before the first backward there are no gradients: a peak there is lower by their size. Later micro-batches add to the
// gradients of the first, so that the size is the same with two or four. Sums wider than weights are one buffer as
// before.
TEST(StateTensors, GradientsLiveFromBackwardToUpdate) {
  const auto run = [](int micro_batches, const char* width, bool by_weight) {
    const Spec spec = spec_of(
        kStatesModel, fmt::format("global_batch: {}, micro_batch: 8, gradient_precision: {}", 8 * micro_batches, width),
        512, "profile: orrery, gradient_accumulation_fusion: false");
    return replay(spec, {.capacity = kRoom, .gradients_by_weight = by_weight});
  };
  const double gradients = 2 * weights(spec_of(kStatesModel, "", 512));
  EXPECT_LT(bytes_of(run(1, "bf16", true), Category::gradients), 0.3 * gradients);
  EXPECT_NEAR(bytes_of(run(1, "bf16", false), Category::gradients) / gradients, 1, 0.2);
  EXPECT_NEAR(bytes_of(run(2, "bf16", true), Category::gradients) / gradients, 1, 0.2);
  EXPECT_EQ(run(4, "bf16", true).peak, run(2, "bf16", true).peak);
  EXPECT_EQ(run(2, "fp32", true).peak, run(2, "fp32", false).peak);
}

// Stacks that copy tensors to reduce, update and gather reserve more segments: fewer where the host waits for every
// kernel, since the copies of one bucket can then use the segments of the previous one.
TEST(StateTensors, CopiesAtAStepsEnd) {
  const Spec spec =
      spec_of(kStatesModel, "data: 4, sharding: zero1, global_batch: 4, gradient_precision: bf16, bucket_MiB: 4", 128,
              "profile: orrery, gradient_accumulation_fusion: false");
  const auto reserved = [&](std::int64_t copies, bool blocking) {
    return replay(spec, {.capacity = kRoom,
                         .gradients_by_weight = true,
                         .flat_copies = copies,
                         .flat_copy = 4 << 20,
                         .blocking_launches = blocking})
        .peak_reserved;
  };
  EXPECT_GT(reserved(1, true), reserved(0, true));
  EXPECT_GE(reserved(2, true), reserved(1, true));
  EXPECT_GE(reserved(1, false), reserved(1, true));
}

// Every state of every rank is given back or kept, whatever the plan: figures of categories sum up.
TEST(StateTensors, PeaksAddUp) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const SlotMemory m = replay(test::random_spec(seed), {.capacity = kRoom,
                                                          .moments_by_weight = true,
                                                          .gradients_by_weight = true,
                                                          .flat_copies = 2,
                                                          .flat_copy = 1 << 20});
    Bytes sum = 0;
    for (const Bytes b : m.at_peak) {
      EXPECT_GE(b, 0) << seed;
      sum += b;
    }
    EXPECT_EQ(sum, m.peak) << seed;
    EXPECT_GE(m.peak_reserved, m.peak) << seed;
  }
}

}  // namespace
}  // namespace orrery
