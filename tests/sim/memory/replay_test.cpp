// A step's memory over time, replayed through the caching allocator: what stays, what is in flight, what sums up.
#include "sim/memory/replay.h"

#include <numeric>

#include <gtest/gtest.h>

#include "sim/cost/costs.h"
#include "sim/engine/simulate.h"
#include "tests/models/plans.h"
#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

using test::spec_of;

std::vector<SlotMemory> replay(const Spec& spec) {
  const Plan plan = make_plan(spec);
  const Costs costs = costs_of(plan, spec, find_profile(spec.cluster.gpu));
  return replay_memory(plan, simulate(plan, costs.timing), {.capacity = Bytes{1} << 50});
}

Bytes activations(const SlotMemory& m) { return m.at_peak[static_cast<std::size_t>(Category::activations)]; }

// Large enough that the allocator's 512-byte steps do not show.
const char* const kModel =
    "name: m, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 1024, gated: false, positions: learned";

// GPipe holds the activations of all m micro-batches, 1F1B of at most p - stage.
TEST(Memory, InFlight) {
  const auto peaks = [](const char* schedule, int m) {
    return replay(spec_of(kModel, fmt::format("pipeline: 4, schedule: {}, global_batch: {}", schedule, m), 512));
  };
  const double layer = 32.0 * 512 * 512, stage = 2 * layer;  // kept by a layer of one micro-batch: no masks
  const auto gpipe8 = peaks("gpipe", 8), gpipe16 = peaks("gpipe", 16);
  const auto few = peaks("1f1b", 8), many = peaks("1f1b", 16);
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_EQ(activations(few[s]), activations(many[s])) << s;
    if (s == 3) continue;  // keeps the logits too
    EXPECT_NEAR(static_cast<double>(activations(gpipe16[s]) - activations(gpipe8[s])) / stage, 8, 0.4) << s;
  }
  for (std::size_t s = 0; s + 2 < 4; ++s)
    EXPECT_NEAR(static_cast<double>(activations(many[s]) - activations(many[s + 1])) / stage, 1, 0.15) << s;
}

// Interleaved: L (1 + (p - 1) / (p v)) layers' worth on the first stage, instead of L.
TEST(Memory, InFlightInterleaved) {
  const auto first = [](const std::string& how) {
    return static_cast<double>(
        activations(replay(spec_of(kModel, "pipeline: 4, global_batch: 16, " + how, 512)).front()));
  };
  const double layer = 32.0 * 512 * 512;
  const double plain = first("schedule: 1f1b"), interleaved = first("schedule: interleaved, virtual_stages: 2");
  EXPECT_NEAR((interleaved - plain) / layer, 8 * 3.0 / 8, 0.7);  // and what was received ahead
}

// All categories of the peak are named, and the states are fully present at the peak.
TEST(Memory, PeaksAddUp) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Spec spec = test::random_spec(seed);
    const Plan plan = make_plan(spec);
    const auto memory = replay(spec);
    for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
      const SlotMemory& m = memory[slot];
      EXPECT_EQ(std::accumulate(m.at_peak.begin(), m.at_peak.end(), Bytes{0}), m.peak) << seed;
      EXPECT_LE(m.first_step_peak, m.peak);
      EXPECT_GE(m.peak_reserved, m.peak);
      EXPECT_GE(m.peak, test::state_bytes(plan, slot));
      EXPECT_FALSE(m.out_of_memory);
    }
  }
}

// Optimizer moments appear at the end of the first step: where the forward peak decides, the second is higher by them.
TEST(Memory, MomentsAppearAtTheFirstUpdate) {
  const auto m = replay(spec_of(kModel, "global_batch: 16, micro_batch: 16", 512)).front();
  const Spec spec = spec_of(kModel, "", 512);
  EXPECT_NEAR(static_cast<double>(m.peak - m.first_step_peak) /
                  static_cast<double>(8 * parameter_count(spec.model, spec.sequence)),
              1,
              0.03);  // the allocator's rounding of large blocks
}

// PyTorch's process group: blocks that a collective used come back when the host sees its end. A host that runs ahead
// of the device needs more of them, at whatever pace its layers are issued; what is allocated stays the same.
TEST(Memory, CollectivesHoldWhatTheyUse) {
  const auto run = [](double layer_us, bool hold, double host_part = 1) {
    const Spec spec = spec_of(kModel, "tensor: 4, micro_batch: 8, global_batch: 16", 4096,
                              fmt::format("profile: nanotron, call_us: 0, layer_us: {}", layer_us));
    const Plan plan = make_plan(spec);
    const Costs costs = costs_of(plan, spec, find_profile(spec.cluster.gpu));
    return replay_memory(plan, simulate(plan, costs.timing),
                         {.capacity = Bytes{1} << 50, .collectives_hold_tensors = hold, .host_part = host_part})
        .front();
  };
  const SlotMemory held = run(0, true), given = run(0, false);
  EXPECT_GT(held.peak_reserved, given.peak_reserved + 4 * Bytes{8 * 4096 * 512 * 2});
  EXPECT_EQ(held.peak, given.peak);
  EXPECT_LT(run(1e6, true).peak_reserved, held.peak_reserved);
  EXPECT_GT(run(1e6, true, 0.01).peak_reserved, run(1e6, true).peak_reserved);
}

// The thread of backward has a cuBLAS handle, and a workspace, of its own, however backward is cut into passes.
TEST(Memory, BackwardHasAWorkspaceOfItsOwn) {
  constexpr Bytes kWorkspace = Bytes{32} << 20;
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const Spec spec = spec_of(kModel, fmt::format("pipeline: 2, global_batch: 4, schedule: {}", schedule), 4096);
    const Plan plan = make_plan(spec);
    const Trace trace = simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing);
    const auto at_peak = [&](Bytes own) {
      const MemoryOptions options = {.capacity = Bytes{1} << 50, .workspace = kWorkspace, .backward_workspace = own};
      return replay_memory(plan, trace, options).front().at_peak[static_cast<std::size_t>(Category::workspace)];
    };
    EXPECT_GE(at_peak(0), kWorkspace) << schedule;
    EXPECT_EQ(at_peak(kWorkspace) - at_peak(0), kWorkspace) << schedule;
  }
}

// A host that is far ahead stands still when the device's queue of launches is full: a collective takes five places of
// it, its kernel's and four events', and so many collectives at most hold their tensors at a time.
TEST(Memory, CollectivesFillTheLaunchQueueWithTheirEvents) {
  constexpr TaskId kTasks = 2000, kPlaces = 5;
  constexpr Bytes kTensor = 16 << 20;
  TinyPlan tiny;
  const auto reduce = tiny.op("reduce", LaneKind::tensor, {});
  const Operand tensor{.access = Access::read_write};
  tiny.change(reduce).operands = tiny.change(reduce).allocates = tiny.change(reduce).frees = {tensor};
  tiny.slot(0);
  for (TaskId t = 0; t < kTasks; ++t) tiny.task(reduce);
  tiny.finish();
  Plan plan = tiny.plan();
  plan.blocks[0].buffers = {{.name = "tensor", .bytes = kTensor}};
  plan.buffers = 1;
  Trace trace{.spans = std::vector<Span>(kTasks), .host = {{}}, .step_time = kTasks};
  for (TaskId t = 0; t < kTasks; ++t) trace.spans[t] = {0, t, t, t + 1, t == 0 ? kNone : t - 1};
  const SlotMemory m =
      replay_memory(plan, trace, {.capacity = Bytes{1} << 50, .collectives_hold_tensors = true}).front();
  const auto held = static_cast<TaskId>(m.peak_reserved / kTensor);
  EXPECT_LE(held, kLaunchQueue / kPlaces + 2);
  EXPECT_GE(held, kLaunchQueue / kPlaces - 2);
}

// A host that waits for the loss finds free what collectives held until then.
TEST(Memory, AHostThatWaitsForTheLossFindsHeldTensorsFree) {
  constexpr TaskId kReductions = 10;
  constexpr Bytes kTensor = 16 << 20;
  TinyPlan tiny;
  const Operand tensor{.access = Access::read_write};
  const auto reduce = tiny.op("reduce", LaneKind::tensor, {}), update = tiny.op("update", LaneKind::compute, {});
  for (const auto op : {reduce, update})
    tiny.change(op).operands = tiny.change(op).allocates = tiny.change(op).frees = {tensor};
  tiny.change(update).phase = Phase::step;
  tiny.slot(0);
  for (TaskId t = 0; t < kReductions; ++t) tiny.task(reduce);
  tiny.task(update);
  tiny.finish();
  Plan plan = tiny.plan();
  plan.blocks[0].buffers = {{.name = "tensor", .bytes = kTensor}};
  plan.buffers = 1;
  Trace trace{.spans = std::vector<Span>(kReductions + 1), .host = {{}}, .step_time = 1000};
  for (TaskId t = 0; t < kReductions; ++t) trace.spans[t] = {0, 100 + t, 100 + t, 101 + t, kNone};
  trace.spans[kReductions] = {0, 900, 900, 1000, kNone};
  for (const BlockRole role : {BlockRole::layer, BlockRole::output}) {
    plan.blocks[0].role = role;
    for (const bool waits : {false, true}) {
      const MemoryOptions options = {
          .capacity = Bytes{1} << 50, .collectives_hold_tensors = true, .waits_for_loss = waits};
      const bool free = waits && role == BlockRole::output;
      EXPECT_EQ(replay_memory(plan, trace, options).front().peak_reserved, (kReductions + (free ? 0 : 1)) * kTensor);
    }
  }
}

// A gather into one tensor per rank, by way of one buffer for all, needs twice the parameters and this rank's part once
// more.
TEST(Memory, GathersIntoLists) {
  const Spec spec = spec_of(kModel, "data: 4, sharding: zero1, global_batch: 4, recompute: full", 128);
  const Plan plan = make_plan(spec);
  const Trace trace = simulate(plan, costs_of(plan, spec, find_profile(spec.cluster.gpu)).timing);
  const auto run = [&](bool lists) {
    return replay_memory(plan, trace, {.capacity = Bytes{1} << 50, .gathers_lists = lists}).front();
  };
  const SlotMemory with = run(true), without = run(false);
  EXPECT_GT(with.peak_reserved, without.peak_reserved);
  EXPECT_EQ(std::accumulate(with.at_peak.begin(), with.at_peak.end(), Bytes{0}), with.peak);
}

// A host that runs ahead while a pipeline fills takes blocks that its device has not given back: from the third forward
// on, so that a pipeline of two stages has none, and the host's speed before that does not matter.
TEST(Memory, HostRunsAheadWhileAPipelineFills) {
  const auto reserved = [](int stages, double filling_part, double host_part = 1) {
    const Spec spec = spec_of(kModel, fmt::format("tensor: 4, pipeline: {}, micro_batch: 8, global_batch: 64", stages),
                              4096, "profile: nanotron, layer_us: 20000");
    const Plan plan = make_plan(spec);
    const Costs costs = costs_of(plan, spec, find_profile(spec.cluster.gpu));
    const MemoryOptions options = {.capacity = Bytes{1} << 50,
                                   .collectives_hold_tensors = true,
                                   .host_part = host_part,
                                   .filling_part = filling_part};
    return replay_memory(plan, simulate(plan, costs.timing), options).front().peak_reserved;
  };
  EXPECT_GT(reserved(4, 0.001), reserved(4, 1) + 4 * Bytes{8 * 4096 * 512 * 2});
  EXPECT_EQ(reserved(2, 0.001), reserved(2, 1));
  EXPECT_EQ(reserved(2, 0.001, 0.5), reserved(2, 1, 0.5));
  EXPECT_GT(reserved(4, 0.001, 0.9), reserved(4, 0.9, 0.9));
}

}  // namespace
}  // namespace orrery
