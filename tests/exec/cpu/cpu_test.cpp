// The CPU's launches, seen through one rank's step; the strategies' agreement is in tests/exec/mpi/strategies_test.cpp.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "exec/cpu/host_device.h"
#include "exec/cpu/launch.h"
#include "exec/host/initial.h"
#include "models/layers/blocks.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using test::Job;
using test::tiny_job;

// One rank whose tasks run one by one on this thread.
class OneRank {
 public:
  explicit OneRank(const Job& job)
      : rank_(job.rank(0)),
        memory_(host_segments()),
        buffers_(rank_, memory_),
        text_(read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", job.spec.model.vocab, job.spec.sequence)),
        state_(run_state(rank_, text_, {.clip = job.spec.strategy.clip, .seed = 3})) {
    set_initial_weights(rank_, 3, buffers_);
  }

  // Runs the step up to the first task for which until() holds; that one is not run.
  template <class Until>
  void run(const Until& until) {
    state_.losses.assign(1, {});
    for (TaskId t = 0; t < rank_.plan.task_count() && !until(rank_.plan.op_of(t)); ++t)
      launch_on_cpu(state_, buffers_.issue(t, [](TaskId) { return true; }));
  }
  double loss() const { return state_.losses[0].sum / static_cast<double>(state_.losses[0].tokens); }

  float* floats(std::uint16_t slot) const { return reinterpret_cast<float*>(buffers_.state(rank_.states[0], slot)); }
  const Rank& rank() const { return rank_; }
  const std::vector<PlacedParameter>& parameters() const { return rank_.parameters.at(rank_.states[0]); }

 private:
  Rank rank_;
  CachingMemory memory_;
  Buffers buffers_;
  Text text_;
  RunState state_;
};

bool is_norm(const Op& op) { return std::holds_alternative<SquaredNorm>(op.work); }

struct CpuCase {
  const char *model, *strategy;
};
const CpuCase kCases[] = {
    {"", "global_batch: 2"},
    {", qk_norm: true, sliding_window: {window: 5}, post_norms: true, scaled_embedding: true", "global_batch: 2"},
    {", gated: false, norm: layernorm, bias: true, positions: learned, tied_embeddings: true, parallel_block: true",
     "global_batch: 2, attention: unfused"},
    {", qk_norm: true, sliding_window: {window: 5}",
     "global_batch: 2, micro_batch: 2, attention: unfused, recompute: "
     "full"},
    {", attention_gate: true, layer_kinds: [recurrence, attention], recurrence: {heads: 4, groups: 2, key_dim: 6, "
     "value_dim: 5}",
     "global_batch: 2, micro_batch: 2"},
    {", gated: false, positions: none, layer_kinds: [recurrence_alone, feed_forward], recurrence: {rule: state_space, "
     "heads: 4, groups: 2, key_dim: 6, value_dim: 5, convolution_bias: true, taps: 3}",
     "global_batch: 2, micro_batch: 2, recompute: full"},
};

// The gradient that a step computes is the slope of the step's loss, measured by central differences along the gradient
// of one weight at a time. A step of 0.003 leaves an error of up to 0.5% by the loss's curvature (a quarter of that
// with half the step). The loss is rounded by up to 6e-8, by how the processor's matrix products add up; the step of a
// small gradient is so long that this is at most 1% of the difference.
TEST(Cpu, GradientsAreTheSlopesOfTheLoss) {
  for (const CpuCase& c : kCases) {
    const Job job = tiny_job(c.strategy, test::kTiny + c.model);
    OneRank at(job);
    at.run(is_norm);
    for (const PlacedParameter& p : at.parameters()) {
      SCOPED_TRACE(p.name + c.model);
      const std::int64_t n = p.local.out * p.local.in;
      const std::vector<float> g(at.floats(kGradients) + p.first, at.floats(kGradients) + p.first + n);
      double squared = 0;
      for (const float x : g) squared += double{x} * x;
      ASSERT_TRUE(std::isfinite(squared));
      if (squared < 1e-10) continue;  // keys' biases: softmax does not see them
      const double length = std::sqrt(squared);
      const double h = std::max(0.003, 3e-6 / length) / length;
      const auto loss_at = [&](double step) {
        OneRank moved(job);
        for (std::int64_t i = 0; i < n; ++i) moved.floats(kParameters)[p.first + i] += static_cast<float>(step * g[i]);
        moved.run(is_norm);
        return moved.loss();
      };
      const double slope = (loss_at(h) - loss_at(-h)) / (2 * h);
      EXPECT_NEAR(slope / squared, 1, 0.02);
    }
  }
}

// A fused loss may work on the stored logits instead of a copy, and then computes exponentials again: the loss and the
// gradients have the same bits.
TEST(Cpu, LossesOnLogitsAreThoseOnCopies) {
  const auto run = [](const char* on) {
    const Job job(test::spec_of(test::kTiny, "precision: fp32, gradient_precision: fp32, global_batch: 2", 16,
                                std::string("profile: orrery, fused_loss_on: ") + on));
    OneRank at(job);
    at.run(is_norm);
    std::vector<float> result = {static_cast<float>(at.loss())};
    for (const PlacedParameter& p : at.parameters()) {
      const float* g = at.floats(kGradients) + p.first;
      result.insert(result.end(), g, g + p.local.out * p.local.in);
    }
    return result;
  };
  const std::vector<float> copy = run("copy");
  EXPECT_EQ(run("logits"), copy);
  EXPECT_EQ(run("in_place"), copy);
}

// A training step moves every weight that has a gradient, in the first step by at most the learning rate, and sets
// gradients to zero.
TEST(Cpu, UpdatesMoveWeightsAndZeroGradients) {
  const Job job = tiny_job("global_batch: 2");
  OneRank before(job), after(job);
  before.run(is_norm);
  after.run([](const Op&) { return false; });
  for (const PlacedParameter& p : before.parameters()) {
    for (std::int64_t i = p.first; i < p.first + p.local.out * p.local.in; ++i) {
      const float moved = after.floats(kParameters)[i] - before.floats(kParameters)[i];
      EXPECT_LE(std::abs(moved), 1.01e-3F) << p.name;
      if (std::abs(before.floats(kGradients)[i]) > 1e-4F) {
        EXPECT_LT(moved * before.floats(kGradients)[i], 0) << p.name;
      }
      EXPECT_EQ(after.floats(kGradients)[i], 0);
    }
  }
}

}  // namespace
}  // namespace orrery
