// Floating-point operations: the papers' closed form, and a plan's own products against it.
#include "sim/flops.h"

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::spec_of;

// Narayanan et al. 2021: 72 B L s h^2 (1 + s/(6h) + V/(12 L h)).
TEST(Flops, ClosedFormOfGpt) {
  for (const double layers : {2, 24, 96}) {
    for (const double h : {64, 1024, 12288}) {
      for (const double s : {32, 2048}) {
        for (const double vocab : {256, 51200}) {
          const Spec spec = spec_of(
              fmt::format("name: gpt, layers: {}, hidden: {}, heads: 8, feed_forward: {}, vocab: {}, gated: false, "
                          "norm: layernorm, bias: true, positions: learned",
                          layers, h, 4 * h, vocab),
              "global_batch: 6", static_cast<std::int64_t>(s));
          EXPECT_NEAR(model_flops(spec) / (72 * 6 * layers * s * h * h * (1 + s / (6 * h) + vocab / (12 * layers * h))),
                      1, 1e-12);
        }
      }
    }
  }
}

struct Products {
  double linear = 0, attention = 0;
};

Products products(const Plan& plan, bool recomputed) {
  Products sum;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (op.recompute != recomputed) continue;
    const double ranks = static_cast<double>(plan.slots[plan.slot_of(t)].multiplicity);
    const double flops = cost_of(op.work, 2).flops * ranks;
    if (const auto* g = std::get_if<Gemm>(&op.work)) {
      const bool pairs = g->heads > 0;
      (pairs ? sum.attention : sum.linear) += flops;
    }
    if (std::holds_alternative<FlashAttention>(op.work)) sum.attention += flops;
  }
  return sum;
}

// Every product of forward and backward over all ranks, once: unfused attention over the full square; flash attention
// over half of it (causal), with a backward of two and a half forwards.
TEST(Flops, PlansDoWhatTheModelNeeds) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Spec spec = test::random_spec(seed, test::kAllShardings, test::Drawn::plain);
    const Model& m = spec.model;
    const Strategy& s = spec.strategy;
    const bool padded = BlockContext(spec, row_of(s.sharding)).padded_vocab != m.vocab;
    if (padded || s.tensor > m.kv_heads || m.sliding_window) continue;
    const Products done = products(make_plan(spec), false);
    const double square = 12.0 * static_cast<double>(m.layers * s.global_batch * spec.sequence * spec.sequence) *
                          static_cast<double>(m.heads * m.head_dim);
    EXPECT_NEAR(done.linear / (model_flops(spec) - square), 1, 1e-9) << seed;
    EXPECT_NEAR(done.attention / square, s.attention == Attention::flash ? 3.5 / 6 : 1, 1e-9) << seed;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

// Full recomputation adds one forward of the layers; selective the attention core of the forward alone.
TEST(Flops, Recomputation) {
  for (const char* attention : {"flash", "unfused"}) {
    for (const int tensor : {1, 4}) {
      const auto flops = [&](const char* recompute) {
        const Spec spec = spec_of(test::kSmall, fmt::format("tensor: {}, pipeline: 2, global_batch: 4, attention: {}, "
                                                            "recompute: {}",
                                                            tensor, attention, recompute));
        return recomputed_flops(make_plan(spec));
      };
      const double core = 4.0 * 8 * 4 * 32 * 32 * 64;
      const double linear = 2.0 * 8 * 4 * 32 * (4 * 64 * 64 + 3 * 64 * 256);
      EXPECT_EQ(flops("none"), 0);
      EXPECT_EQ(flops("selective"), core);
      EXPECT_EQ(flops("full"), core + linear);
      EXPECT_EQ(flops("[mlp]"), 2.0 * 8 * 4 * 32 * 3 * 64 * 256);
      EXPECT_EQ(flops("[norm, activation]"), 0);
    }
  }
}

}  // namespace
}  // namespace orrery
