// DAPPLE's planner against all possible plans, whose latency is computed independently.
#include "models/partition/dapple.h"

#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/planner/make_plan.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

PipelineCosts costs_of(std::uint64_t seed, std::int64_t layers, std::int64_t places, std::int64_t samples) {
  test::Random random(seed);
  PipelineCosts c;
  for (std::int64_t i = 0; i < layers; ++i) {
    c.forward.push_back(static_cast<double>(1 + random.next() % 9) * 1e-3);
    c.gradients.push_back(static_cast<double>(random.next() % 9) * 1e7);
    c.states.push_back(static_cast<double>(random.next() % 4));
    c.shared_states.push_back(static_cast<double>(random.next() % 4));
  }
  c.hidden_bytes = static_cast<double>(random.next() % 9) * 1e6;
  c.samples = samples;
  c.micro_batches = random.pick<std::int64_t>({1, 2, 8, 32});
  c.copies = random.pick<std::int64_t>({1, 2});
  for (std::int64_t p = 0; p < places; ++p) c.node.push_back(p / 2);
  if (random.flag()) c.table = {3e7, 2, 1};
  c.inside_GBps = 100;
  c.between_GBps = 10;
  c.memory = random.flag() ? 1e9 : 8;
  return c;
}

bool fits(const PipelineCosts& c, const StagePlan& plan) {
  std::size_t layer = 0;
  for (std::size_t s = 0; s < plan.layers.size(); ++s) {
    const bool copy = s > 0 && s + 1 == plan.layers.size();
    double bytes = copy ? c.table.states + c.table.shared_states / static_cast<double>(plan.replicas[s]) : 0;
    for (std::int64_t i = 0; i < plan.layers[s]; ++i, ++layer)
      bytes += c.states[layer] + c.shared_states[layer] / static_cast<double>(plan.replicas[s]);
    if (bytes > c.memory) return false;
  }
  return true;
}

// Latency of a plan: every stage forward, m - 1 turns of the slowest stage or transfer, every stage backward, and the
// reductions that end after the earlier stages.
double weighed(const PipelineCosts& c, const StagePlan& plan) {
  const std::size_t stages = plan.layers.size();
  double forward = 0, dearest = 0;
  std::vector<double> back(stages), passed(stages), reduced(stages);
  std::size_t layer = 0, place = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    double run = 0, bytes = s > 0 && s + 1 == stages ? c.table.gradients : 0;
    const auto r = static_cast<std::size_t>(plan.replicas[s]);
    for (std::int64_t i = 0; i < plan.layers[s]; ++i, ++layer) {
      run += c.forward[layer] / static_cast<double>(r);
      bytes += c.gradients[layer];
    }
    const std::size_t next = s + 1 < stages ? static_cast<std::size_t>(plan.replicas[s + 1]) : 0;
    const auto speed = [&](std::size_t last) { return c.node[place] == c.node[last] ? 100e9 : 10e9; };
    if (next > 0) passed[s] = c.hidden_bytes / static_cast<double>(std::min(r, next)) / speed(place + r + next - 1);
    const auto ranks = static_cast<double>(plan.replicas[s] * c.copies);
    reduced[s] = ranks > 1 ? 2 * (ranks - 1) / ranks * bytes / speed(place + r - 1) : 0;
    if (s == 0 && stages > 1) reduced[s] += c.table.gradients / speed(c.node.size() - 1);
    back[s] = 2 * run;
    forward += run + passed[s];
    dearest = std::max({dearest, 3 * run, 2 * passed[s]});
    place += r;
  }
  double end = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    double until = reduced[s];
    for (std::size_t k = s; k < stages; ++k) until += back[k] + passed[k];
    end = std::max(end, until);
  }
  return forward + static_cast<double>(c.micro_batches - 1) * dearest + end;
}

// The least latency of all plans that extend this one by the layers and places left.
double best_of_all(const PipelineCosts& c, StagePlan& plan, std::int64_t layers, std::int64_t places,
                   std::int64_t stages) {
  if (layers == 0 || places == 0) {
    const bool whole = layers == 0 && places == 0 && (stages == 0 || std::ssize(plan.layers) == stages);
    return whole && fits(c, plan) ? weighed(c, plan) : std::numeric_limits<double>::infinity();
  }
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t n = 1; n <= layers; ++n) {
    for (std::int64_t r = 1; r <= places; ++r) {
      if (c.samples % r != 0) continue;
      plan.layers.push_back(n);
      plan.replicas.push_back(r);
      best = std::min(best, best_of_all(c, plan, layers - n, places - r, stages));
      plan.layers.pop_back();
      plan.replicas.pop_back();
    }
  }
  return best;
}

TEST(Dapple, FindsThePlanOfLeastLatency) {
  int planned = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const PipelineCosts c = costs_of(seed, 2 + static_cast<std::int64_t>(seed % 5),
                                     1 + static_cast<std::int64_t>(seed % 6), seed % 2 == 0 ? 12 : 4);
    for (const std::int64_t stages : {0, 1, 2, 3}) {
      StagePlan none;
      const double best = best_of_all(c, none, std::ssize(c.forward), std::ssize(c.node), stages);
      if (best == std::numeric_limits<double>::infinity()) {
        EXPECT_THROW(plan_stages(c, stages), Error);
        ++refused;
        continue;
      }
      const StagePlan plan = plan_stages(c, stages);
      EXPECT_TRUE(fits(c, plan));
      EXPECT_NEAR(latency(c, plan), weighed(c, plan), 1e-9 * best);
      EXPECT_NEAR(latency(c, plan), best, 1e-9 * best) << "seed " << seed << ", stages " << stages;
      ++planned;
    }
  }
  EXPECT_GT(planned, 100);
  EXPECT_GT(refused, 20);
}

// A slow output layer gets as many ranks as the layers before it, so that no stage waits for another.
TEST(Dapple, ReplicatesWhatIsHeavy) {
  PipelineCosts c = costs_of(1, 4, 4, 12);
  c.forward = {1, 1, 1, 9};
  c.gradients = c.states = c.shared_states = {0, 0, 0, 0};
  c.hidden_bytes = 0;
  c.micro_batches = 100;
  const StagePlan plan = plan_stages(c, 2);
  EXPECT_EQ(plan.layers, (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(plan.replicas, (std::vector<std::int64_t>{1, 3}));
}

// Both ends of a pipeline hold a tied token-embedding table: the memory of a rank at either end is that of the plan's
// flat buffers.
TEST(Dapple, CountsATiedTableAtBothEnds) {
  const Spec spec = test::spec_of(
      "name: tied, layers: 2, hidden: 64, heads: 8, kv_heads: 8, head_dim: 8, feed_forward: 256, vocab: 32768, "
      "tied_embeddings: true",
      "pipeline: 2, stage_replicas: [1, 2], micro_batch: 6, global_batch: 12");
  const PipelineCosts c = pipeline_costs(spec);
  const Plan plan = make_plan(spec);
  for (const std::uint32_t slot : {0U, 1U}) {
    double held = 0;
    for (const Frame& f : plan.frames) {
      if (f.slot != slot || plan.blocks[f.block].role != BlockRole::state) continue;
      for (const BlockBuffer& buffer : plan.blocks[f.block].buffers)
        held += buffer.category == Category::buffers ? 0 : static_cast<double>(buffer.bytes);
    }
    EXPECT_NEAR((c.states[slot] + (slot == 1 ? c.table.states : 0)) / held, 1, 0.01) << slot;
  }
  PipelineCosts small = c;
  small.memory = 1.01 * std::max(c.states[0], c.states[1] + c.table.states);
  EXPECT_EQ(plan_stages(small, 2).layers.size(), 2U);
  small.memory = 0.99 * (c.states[1] + c.table.states);
  EXPECT_THROW(plan_stages(small, 2), Error);
  small.memory = 1.01 * (c.states[0] + c.states[1]);  // one stage holds the table once
  EXPECT_EQ(plan_stages(small, 1).layers, std::vector<std::int64_t>{2});
}

// With sequence parallelism each tensor rank passes its own rows on.
TEST(Dapple, WeighsTheBytesThatThePlanPasses) {
  for (const char* sequence : {"true", "false"}) {
    const Spec spec = test::spec_of(
        test::kSmall,
        fmt::format("tensor: 2, pipeline: 2, sequence_parallel: {}, micro_batch: 2, global_batch: 8", sequence));
    const Plan plan = make_plan(spec);
    int sends = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (plan.op_of(t).lane != LaneKind::send_next) continue;
      EXPECT_EQ(static_cast<double>(std::get<Transfer>(plan.op_of(t).work).bytes), pipeline_costs(spec).hidden_bytes);
      ++sends;
    }
    EXPECT_GT(sends, 0);
  }
}

}  // namespace
}  // namespace orrery
