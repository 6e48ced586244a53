// Training in bf16 follows training in fp32, and training lowers the loss.
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

// bf16 keeps 8 significant bits: a value is off by 2^-9 at most. The loss of a token passes through some dozens of such
// roundings, of either sign; over the tokens of a step they cancel. Measured: 2.6e-4 of the loss at most, which itself
// falls by 7% in these steps. A quarter of bf16's spacing:
constexpr double kLossLimit = 1.0 / 1024;
// A tensor's gradient is made of those roundings without cancelling: sqrt(100) 2^-9 = 0.02 of its norm for a hundred of
// them. Measured: 0.018 at most. Its change over the steps under Adam, which gives small elements of a gradient the
// weight of large ones: 0.046. A copy of the weights that lags a step behind, or a micro-batch left out, changes them
// by more than a tenth.
constexpr double kGradientLimit = 0.04, kNarrowChangeLimit = 0.08;

class Bf16 : public testing::TestWithParam<Case> {};

TEST_P(Bf16, FollowsFp32) {
  const Case& c = GetParam();
  const Spec spec = spec_of(c);
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result narrow = run(some, spec);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  // Leaves out key biases: their gradients are rounding noise, which is larger here.
  const auto exact = [&](const Tensors& x) { return without_key_biases(spec.model, x, false); };
  const Result& wide = reference_of(spec);
  for (std::int64_t s = 0; s < kSteps; ++s) EXPECT_NEAR(narrow.losses[s] / wide.losses[s], 1, kLossLimit) << s;
  const auto [gradient, name] = worst(exact(narrow.gradients), exact(wide.gradients));
  EXPECT_LE(gradient, kGradientLimit) << name;
  const auto [moved, of] = worst(exact(change(narrow)), exact(change(wide)));
  EXPECT_LE(moved, kNarrowChangeLimit) << of;
}

std::vector<Case> narrow_cases() {
  std::vector<Case> cases;
  for (const char* gradients : {"fp32", "bf16"}) {
    for (const char* strategy :
         {"data: 2, global_batch: 4", "data: 2, sharding: zero1, global_batch: 4",
          "data: 2, sharding: zero3, global_batch: 4", "data: 2, sharding: fsdp, global_batch: 4",
          "tensor: 2, data: 1, global_batch: 4", "pipeline: 4, data: 1, global_batch: 4",
          "tensor: 4, tensor_kind: 2d, data: 1, micro_batch: 2, global_batch: 4",
          "tensor: 8, tensor_kind: 3d, data: 1, micro_batch: 4, global_batch: 4"})
      cases.push_back({kLlama, strategy, "adamw", "orrery", "bf16", gradients});
    cases.push_back(
        {kGpt, "tensor: 2, data: 2, sharding: zero1, global_batch: 4", "adamw", "megatron-core", "bf16", gradients});
    cases.push_back({kGpt, "data: 2, global_batch: 4", "adamw", "pytorch-fsdp", "bf16", gradients});
    cases.push_back(
        {kQwen, "tensor: 4, data: 2, attention: unfused, global_batch: 4", "adamw", "torchtitan", "bf16", gradients});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Bf16, testing::ValuesIn(narrow_cases()));

// Training lowers the loss. A model that knows nothing has a loss of log(250) = 5.5; one that knows how often each byte
// of the text occurs, and nothing about the bytes before it, 2.99 (the entropy of exec/program/data/text.txt).
// Measured: 2.60.
TEST(Training, LowersTheLoss) {
  const Spec spec = spec_of({kLlama, "data: 2, sharding: fsdp, global_batch: 8, micro_batch: 2"});
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  constexpr std::int64_t kLast = 10;
  const Result result = run(some, spec, {.steps = 100});
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  EXPECT_NEAR(result.losses.front(), std::log(250), 0.1);
  EXPECT_LT(std::accumulate(result.losses.end() - kLast, result.losses.end(), 0.0) / kLast, 2.8);
}

}  // namespace
}  // namespace orrery
