// Quantisation-aware training: weights and inputs of linear layers are rounded to few bits in forward. Any layout takes
// the step of one rank.
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

constexpr char kRoundedToFour[] = "quantise: {weights: int4, group: 8, activations: int4}, ";
constexpr char kRoundedToEight[] = "quantise: {weights: int8, group: 16, activations: fp8}, ";

class Rounded : public testing::TestWithParam<Case> {};

// One step: ranks that cut samples, layers or states compute the same numbers as one rank, bit for bit, until they sum
// gradients. Tensor and context ranks sum inputs in another order, and a number that this brings to the other side of a
// code's border changes gradients by 1e-4 and more. With inputs in 4 bits, and few of them, none is so near a border.
TEST_P(Rounded, StepAsOnOneRank) {
  const Spec spec = spec_of(GetParam());
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  int number = 0;
  MPI_Comm_rank(some, &number);
  const Result result = run(some, spec, {.steps = 1});
  MPI_Comm_free(&some);
  if (number > 0) return;
  const Result one = run(MPI_COMM_SELF, on_one_rank(spec), {.steps = 1});
  const auto [gradient, which] = worst(without_key_biases(spec.model, result.gradients, true),
                                       without_key_biases(spec.model, one.gradients, true));
  EXPECT_LE(gradient, kLimit) << which;
  const auto [weight, name] = worst(without_key_biases(spec.model, result.weights, false),
                                    without_key_biases(spec.model, from_nonzero(one), false));
  EXPECT_LE(weight, kLimit) << name;
  EXPECT_NEAR(result.losses[0], one.losses[0], kLimit * one.losses[0]);
}

const Case kRounded[] = {
    {kLlama, kRoundedToFour + std::string("data: 1, global_batch: 2")},
    {kLlama, kRoundedToEight + std::string("data: 2, global_batch: 4")},
    {kLlama, kRoundedToEight + std::string("data: 4, sharding: fsdp, global_batch: 4")},
    {kLlama, kRoundedToFour + std::string("data: 2, sharding: zero3, global_batch: 4, recompute: full")},
    {kLlama, kRoundedToFour + std::string("data: 2, sharding: zero1, global_batch: 8")},
    {kLlama, kRoundedToFour + std::string("pipeline: 4, data: 1, schedule: gpipe, global_batch: 4")},
    {kLlama, kRoundedToFour + std::string("pipeline: 2, virtual_stages: 2, data: 2, global_batch: 8")},
    {kLlama, kRoundedToFour + std::string("pipeline: 4, data: 2, schedule: zb-h1, global_batch: 8")},
    {kLlama, kRoundedToFour + std::string("tensor: 2, data: 1, global_batch: 2")},
    {kLlama, kRoundedToFour + std::string("tensor: 4, data: 2, sequence_parallel: false, global_batch: 4")},
    {kLlama, kRoundedToFour + std::string("tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 4")},
    {kLlama, kRoundedToFour + std::string("context: 2, tensor: 2, data: 2, global_batch: 4")},
    {kGpt, kRoundedToFour + std::string("tensor: 2, data: 1, global_batch: 1")},
    {kQwen, kRoundedToFour + std::string("pipeline: 3, data: 1, global_batch: 3")},
};
INSTANTIATE_TEST_SUITE_P(Layouts, Rounded, testing::ValuesIn(kRounded));

// Rounding changes the gradients, and the weights stay as fine as they were.
TEST(RoundedTraining, KeepsFineWeights) {
  const Spec spec = spec_of({kLlama, kRoundedToFour + std::string("data: 1, global_batch: 2")});
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result rounded = run(some, spec);
  MPI_Comm_free(&some);
  Spec wide = spec;
  wide.strategy.weights = wide.strategy.inputs = {};
  const Result plain = run(MPI_COMM_SELF, wide);
  EXPECT_GT(worst(rounded.gradients, plain.gradients).first, 1e-3);
  EXPECT_LT(worst(rounded.gradients, plain.gradients).first, 1);
  EXPECT_EQ(worst(rounded.initial, plain.initial).first, 0);
  EXPECT_LT(rounded.losses.back(), rounded.losses.front());
}

}  // namespace
}  // namespace orrery
