// Optimizers that work on complete matrices or tensors (Muon, Adafactor) and moments of 8 bits: on several ranks
// against one.
#include <cmath>

#include "models/base/error.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

class Optimizers : public testing::TestWithParam<Case> {};

TEST_P(Optimizers, StepAsOnOneRank) { expect_like_one_rank(spec_of(GetParam())); }

// Five layers, so that a round of several ranks is not full.
const std::string kFive =
    "{name: five-layers, layers: 5, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 250}";
const std::string kWithBiases =
    "{name: biased, layers: 4, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 96, vocab: 250, qkv_bias: true, "
    "qk_norm: true, gated: false, bias: true, norm: layernorm}";

std::vector<Case> whole_cases(const std::string& optimizer) {
  std::vector<Case> cases;
  const auto add = [&](const std::string& model, const char* strategy, const char* software = "orrery") {
    cases.push_back({model, strategy, optimizer, software});
  };
  add(kLlama, "data: 2, global_batch: 4");
  add(kFive, "data: 3, global_batch: 6, clip: 0");
  add(kGpt, "data: 8, global_batch: 8");
  add(kLlama, "data: 2, sharding: zero1, global_batch: 4");
  add(kFive, "data: 3, sharding: zero1, bucket_MiB: 0.02, global_batch: 6");
  add(kLlama, "data: 2, sharding: zero2, global_batch: 4");
  add(kGpt, "data: 2, sharding: zero2, no_sync: true, global_batch: 8");
  add(kLlama, "data: 2, sharding: zero3, global_batch: 8");
  add(kWithBiases, "data: 3, sharding: fsdp, global_batch: 6");
  add(kFive, "data: 8, sharding: fsdp, recompute: full, global_batch: 8");
  add(kLlama, "data: 2, sharding: fsdp-grad-op, global_batch: 4");
  add(kLlama, "data: 1, sharding: fsdp, global_batch: 2");
  add(kLlama, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8");
  add(kGpt, "data: 6, sharding: hsdp, shard_group: 3, global_batch: 12");
  add(kLlama, "tensor: 2, data: 1, global_batch: 2");
  add(kQwen, "tensor: 4, data: 1, sequence_parallel: false, global_batch: 2");
  add(kWithBiases, "tensor: 4, data: 2, sharding: zero1, global_batch: 4");
  add(kLlama, "tensor: 2, data: 3, global_batch: 6");
  add(kGpt, "tensor: 2, data: 2, sharding: zero3, global_batch: 8");
  add(kLlama, "tensor: 2, data: 4, sharding: hsdp, shard_group: 2, global_batch: 8");
  add(kLlama, "pipeline: 4, data: 1, global_batch: 4");
  add(kLlama, "pipeline: 2, data: 2, sharding: zero1, global_batch: 8");
  add(kGpt, "pipeline: 2, data: 2, sharding: zero2, global_batch: 8");
  add(kLlama, "pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, global_batch: 8");
  add(kFive, "pipeline: 2, data: 2, stage_layers: [2, 3], global_batch: 8");
  add(kLlama, "pipeline: 4, data: 1, schedule: zb-h1, global_batch: 8");
  add(kLlama, "pipeline: 2, data: 2, sharding: zero3, schedule: zb-v, global_batch: 8");
  add(kLlama, "pipeline: 2, data: 2, sharding: fsdp, schedule: dualpipev, global_batch: 8");
  add(kGpt, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, schedule: zb-1p, global_batch: 8");
  add(kQwen, "pipeline: 2, tensor: 2, data: 2, sharding: fsdp, global_batch: 8");
  add(kLlama, "context: 2, data: 2, global_batch: 4");
  add(kLlama, "context: 2, data: 2, sharding: zero1, global_batch: 4");
  add(kGpt, "tensor: 2, data: 2, sharding: zero1, global_batch: 4", "megatron-core");
  add(kLlama, "data: 2, sharding: fsdp, global_batch: 4", "torchtitan");
  add(kLlama, "data: 2, no_sync: false, global_batch: 8");
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Muon, Optimizers, testing::ValuesIn(whole_cases("muon")));

INSTANTIATE_TEST_SUITE_P(Adafactor, Optimizers, testing::ValuesIn(whole_cases("adafactor")));

// The share of a model's weights that moved otherwise than on one rank, by more than 1 % of the mean size of a move of
// their tensor. Sums over ranks differ by rounding, and a moment within 1e-6 of the middle between two of 256 values
// may go to either of them.
double share_moved_apart(const Result& r, const Result& one) {
  std::int64_t apart = 0, all = 0;
  const Tensors moves = change(r);
  for (const auto& [name, reference] : change(one)) {
    const double limit = 0.01 * norm(reference) / std::sqrt(static_cast<double>(reference.size()));
    const std::vector<float>& move = moves.at(name);
    for (std::size_t i = 0; i < reference.size(); ++i) apart += std::abs(move[i] - reference[i]) > limit ? 1 : 0;
    all += std::ssize(reference);
  }
  return static_cast<double>(apart) / static_cast<double>(all);
}

class EightBitMoments : public testing::TestWithParam<Case> {};

// Gradients and losses are those of one rank. Weights are too, up to the few whose moments were rounded otherwise.
TEST_P(EightBitMoments, StepAsOnOneRank) {
  const Spec spec = spec_of(GetParam());
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result result = run(some, spec);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  const Result& one = reference_of(spec);
  const Distance d = distance(spec, result, one);
  EXPECT_LE(d.gradient, kLimit) << d.of_gradient;
  EXPECT_LE(d.loss, kLimit);
  EXPECT_LE(d.change, 10 * kChangeLimit) << d.of_change;
  EXPECT_LE(share_moved_apart(result, one), 1e-4);
}

// Ranks round their own elements block by block. Where every rank's elements begin and end at multiples of a block of
// the complete weights, the blocks are those of one rank: in these models the weights of each layer, cut over two data
// ranks or by tensor ranks, are whole blocks.
const std::string kBlocks =
    "{name: whole-blocks, layers: 4, hidden: 256, heads: 4, kv_heads: 4, feed_forward: 256, vocab: 256, norm: "
    "layernorm}";
const std::string kWideBlocks =
    "{name: wide-blocks, layers: 2, hidden: 512, heads: 8, kv_heads: 8, feed_forward: 512, vocab: 256, norm: "
    "layernorm}";

std::vector<Case> eight_bit_cases() {
  std::vector<Case> cases;
  for (const auto& [model, strategy] :
       {std::pair{kLlama, "data: 2, global_batch: 4"}, std::pair{kGpt, "data: 8, global_batch: 8"},
        std::pair{kBlocks, "data: 2, sharding: zero1, global_batch: 4"},
        std::pair{kBlocks, "data: 2, sharding: zero2, global_batch: 4"},
        std::pair{kBlocks, "data: 2, sharding: zero3, global_batch: 4"},
        std::pair{kBlocks, "data: 2, sharding: fsdp, global_batch: 4"},
        std::pair{kBlocks, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 4"},
        std::pair{kBlocks, "pipeline: 4, data: 1, global_batch: 4"},
        std::pair{kBlocks, "pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, global_batch: 4"},
        std::pair{kBlocks, "pipeline: 2, data: 2, sharding: fsdp, schedule: zb-h1, global_batch: 4"},
        std::pair{kWideBlocks, "tensor: 2, data: 1, global_batch: 4"},
        std::pair{kWideBlocks, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 4"}})
    cases.push_back({model, strategy, "{name: adamw, states: 8bit}"});
  cases.push_back({kBlocks, "data: 2, sharding: zero1, overlap: {parameter_gather: update}, global_batch: 4",
                   "{name: adamw, states: 8bit}"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EightBit, EightBitMoments, testing::ValuesIn(eight_bit_cases()));

// If blocks differ, moments are rounded in other blocks: a step of 8-bit AdamW differs from one of AdamW by about
// the spacing of the 256 values, on any ranks.
TEST(EightBit, StaysNearWideMoments) {
  for (const char* strategy : {"data: 1, global_batch: 2", "data: 3, sharding: fsdp, global_batch: 6"}) {
    const Spec spec = spec_of({kLlama, strategy, "{name: adamw, states: 8bit}"});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    const Result narrow = run(some, spec);
    int rank = 0;
    MPI_Comm_rank(some, &rank);
    MPI_Comm_free(&some);
    if (rank > 0) continue;
    Spec wide = spec;
    wide.strategy.optimizer = {};
    const Distance d = distance(wide, narrow, reference_of(wide));
    EXPECT_LE(d.loss, 2e-3);
    EXPECT_GT(d.change, 10 * kChangeLimit) << "moments were not rounded";
    EXPECT_LE(d.change, 0.1) << d.of_change;
    if (spec.strategy.data > 1) {
      EXPECT_GT(share_moved_apart(narrow, reference_of(spec)), 0.1) << "blocks are those of one rank";
    }
  }
}

// With 16-bit parameters the directions travel in 16 bits, and masters are updated: losses follow those in fp32 as
// tests/exec/mpi/precision_test.cpp says. Weights move apart twice as far as under AdamW there: orthogonalization gives
// directions of small gradients, which rounding changes most, as much weight as the others.
TEST(MatrixOptimizers, FollowFp32InBf16) {
  for (const char* optimizer : {"muon", "adafactor", "{name: adamw, states: 8bit}"}) {
    for (const char* strategy :
         {"data: 2, global_batch: 4", "data: 2, sharding: zero1, global_batch: 4",
          "data: 2, sharding: fsdp, global_batch: 4", "tensor: 2, data: 2, sharding: zero3, global_batch: 4"}) {
      for (const char* gradients : {"fp32", "bf16"}) {
        const Spec spec = spec_of({kLlama, strategy, optimizer, "orrery", "bf16", gradients});
        MPI_Comm some = ranks_for(spec);
        if (some == MPI_COMM_NULL) continue;
        const Result narrow = run(some, spec);
        int rank = 0;
        MPI_Comm_rank(some, &rank);
        MPI_Comm_free(&some);
        if (rank > 0) continue;
        const Result& wide = reference_of(spec);
        for (std::int64_t s = 0; s < kSteps; ++s)
          EXPECT_NEAR(narrow.losses[s] / wide.losses[s], 1, 1.0 / 1024) << optimizer << ", " << strategy;
        const auto [moved, of] = worst(change(narrow), change(wide));
        EXPECT_LE(moved, 0.2) << of << ", " << optimizer << ", " << strategy;
      }
    }
  }
}

// Every one of these optimizers lowers the loss as AdamW does (precision_test.cpp): from log(250) = 5.5.
TEST(MatrixOptimizers, LowerTheLoss) {
  for (const char* optimizer : {"muon", "adafactor", "{name: adamw, states: 8bit}"}) {
    const Spec spec = spec_of({kLlama, "data: 2, sharding: zero1, global_batch: 8, micro_batch: 2", optimizer});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    const auto quick = [&](Training& t) {
      if (spec.strategy.optimizer.kind == OptimizerKind::adafactor) t.rule.learning_rate = 0.05;
    };
    const Result result = run(some, spec, {.steps = 60, .training = quick});
    int rank = 0;
    MPI_Comm_rank(some, &rank);
    MPI_Comm_free(&some);
    if (rank > 0) continue;
    EXPECT_NEAR(result.losses.front(), std::log(250), 0.1);
    EXPECT_LT(result.losses.back(), 3.5) << optimizer;
  }
}

// A combination that no rank executes is refused with one line.
TEST(MatrixOptimizers, RefuseWhatTheyDoNotExecute) {
  const auto refused = [](const Case& c, const std::string& why) {
    try {
      check_executable(spec_of(c));
      ADD_FAILURE() << c.strategy;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  refused({kLlama, "data: 2, global_batch: 4", "muon", "orrery", "fp16"}, "no ranks scale its gradients");
  refused({kLlama, "data: 2, global_batch: 4", "{name: muon, states: 8bit}"}, "no ranks keep them");
}

}  // namespace
}  // namespace orrery
