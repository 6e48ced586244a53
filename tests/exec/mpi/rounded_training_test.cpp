// Quantisation-aware training: weights and inputs of linear layers are rounded to few bits in forward. Any layout takes
// the step of one rank.
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

constexpr char kRoundedToFour[] = "quantise: {weights: int4, group: 8, activations: int4}, ";
constexpr char kRoundedToEight[] = "quantise: {weights: int8, group: 16, activations: fp8}, ";

class Rounded : public testing::TestWithParam<Case> {};

// Returns whether ranks of a layout sum inputs of products in another order than one rank does.
bool sums_in_another_order(const Spec& spec) { return spec.strategy.tensor > 1 || spec.strategy.context > 1; }

// One step: ranks that cut samples, layers or states compute the same numbers as one rank, bit for bit, until they sum
// gradients. Tensor and context ranks sum inputs in another order, and a number that this brings to the other side of a
// code's border changes gradients by 1e-4 and more. Whether one does depends on the processor's order of sums too, so
// that three sets of weights are tried: with inputs in 4 bits, and few of them, one at least has no number at a border.
// One number at a border was seen to change a gradient by 0.008 of it; a layout that computes something else changes
// gradients by about their own size.
TEST_P(Rounded, StepAsOnOneRank) {
  constexpr double kBorder = 0.05;
  const Spec spec = spec_of(GetParam());
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  int number = 0;
  MPI_Comm_rank(some, &number);
  std::pair<double, std::string> nearest = {INFINITY, ""};  // largest distance, and the gradient that is farthest
  for (std::uint64_t seed = 0; seed < (sums_in_another_order(spec) ? 3 : 1); ++seed) {
    Changes changes = {.steps = 1};
    changes.training = [=](Training& t) { t.seed = seed; };
    const Result result = run(some, spec, changes);
    if (number > 0) continue;
    const Distance far = distance(spec, result, run(MPI_COMM_SELF, on_one_rank(spec), changes));
    EXPECT_LE(far.gradient, kBorder) << "seed " << seed << ": " << far.of_gradient;
    EXPECT_LE(far.weight, kBorder) << "seed " << seed << ": " << far.of_weight;
    EXPECT_LE(far.loss, kBorder) << "seed " << seed;
    nearest = std::min(nearest, {std::max({far.gradient, far.weight, far.loss}), far.of_gradient});
  }
  MPI_Comm_free(&some);
  if (number > 0) return;
  EXPECT_LE(nearest.first, kLimit) << nearest.second;
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
