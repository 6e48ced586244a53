// Training in bf16 and fp16 follows training in fp32, updates with infinite gradients are skipped, and training lowers
// the loss.
#include "models/layers/blocks.h"
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

// Gradients of 16 bits that stay beside their sums are those that are freed otherwise, to the bit.
class KeptGradients : public testing::TestWithParam<Case> {};

TEST_P(KeptGradients, AreThoseThatAreFreedOtherwise) {
  Spec spec = spec_of(GetParam());
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  spec.software.kernels.gradient_accumulation_fusion = false;
  spec.software.kernels.dense_embedding_gradient = true;
  spec.software.communication.accumulates_after_backward = false;
  const Result freed = run(some, spec);
  spec.strategy.keep_16bit_gradients = true;
  const Result kept = run(some, spec);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  EXPECT_EQ(kept.losses, freed.losses);
  EXPECT_EQ(worst(kept.gradients, freed.gradients).first, 0);
  EXPECT_EQ(worst(kept.weights, freed.weights).first, 0);
  EXPECT_LT(kept.losses.back(), kept.losses.front());
}

std::vector<Case> kept_cases() {
  std::vector<Case> cases;
  for (const char* strategy :
       {"data: 2, global_batch: 4", "data: 2, sharding: zero1, global_batch: 8",
        "data: 2, sharding: zero2, no_sync: true, global_batch: 4", "tensor: 2, data: 2, global_batch: 4",
        "pipeline: 2, data: 2, schedule: zb-h1, global_batch: 8", "data: 2, no_sync: false, global_batch: 8",
        "pipeline: 2, virtual_stages: 2, data: 1, recompute: full, global_batch: 4",
        "tensor: 4, tensor_kind: 2d, data: 1, micro_batch: 2, global_batch: 4",
        "data: 2, sharding: zero1, offload: {optimizer: cpu}, global_batch: 4"})
    for (const std::string& model : {kLlama, kGpt}) cases.push_back({model, strategy, "adamw", "orrery", "bf16"});
  cases.push_back({kGpt, "data: 2, sharding: zero1, global_batch: 8", "adamw", "nanotron", "bf16"});
  cases.push_back({kQwen, "tensor: 2, data: 2, sharding: zero1, global_batch: 4", "adamw", "megatron-core", "fp16"});
  cases.push_back({with_experts("tiny-moe", "experts: 4, top_k: 2, feed_forward: 48"),
                   "data: 2, expert: 2, global_batch: 4", "adamw", "orrery", "bf16"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, KeptGradients, testing::ValuesIn(kept_cases()));

// fp16 keeps 11 significant bits, eight times as fine as bf16; its limits are a quarter of bf16's, since small
// gradients lose bits below 2^-14 in spite of the loss scale.
class Fp16 : public testing::TestWithParam<Case> {};

TEST_P(Fp16, FollowsFp32) {
  const Spec spec = spec_of(GetParam());
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result narrow = run(some, spec);
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank > 0) return;
  const auto exact = [&](const Tensors& x) { return without_key_biases(spec.model, x, false); };
  const Result& wide = reference_of(spec);
  for (std::int64_t s = 0; s < kSteps; ++s) EXPECT_NEAR(narrow.losses[s] / wide.losses[s], 1, kLossLimit / 4) << s;
  const auto [moved, of] = worst(exact(change(narrow)), exact(change(wide)));
  EXPECT_LE(moved, kNarrowChangeLimit / 4) << of;
}

std::vector<Case> half_cases() {
  std::vector<Case> cases;
  for (const char* gradients : {"fp32", "fp16"}) {
    for (const char* strategy :
         {"data: 2, global_batch: 4", "data: 2, sharding: zero1, global_batch: 4, clip: 1",
          "data: 2, sharding: zero3, global_batch: 4, clip: 0.5", "data: 2, sharding: fsdp, global_batch: 4, clip: 0.5",
          "tensor: 2, pipeline: 2, data: 1, global_batch: 4, clip: 0.5",
          "data: 2, sharding: zero1, offload: {optimizer: cpu}, global_batch: 4, clip: 0.5",
          "data: 2, sharding: zero2, offload: {optimizer: cpu, gradients: cpu}, global_batch: 4, clip: 0.5"})
      cases.push_back({kLlama, strategy, "adamw", "orrery", "fp16", gradients});
    cases.push_back({kGpt, "tensor: 2, data: 2, sharding: zero1, global_batch: 4, clip: 0.5", "adamw", "megatron-core",
                     "fp16", gradients});
    cases.push_back(
        {kGpt, "data: 2, sharding: zero2, global_batch: 4, clip: 0.5", "adamw", "deepspeed-2019", "fp16", gradients});
  }
  cases.push_back({with_experts("tiny-moe", "experts: 4, top_k: 2, feed_forward: 48, aux_loss: 0.1"),
                   "data: 4, expert: 4, global_batch: 4, clip: 0.5", "adamw", "orrery", "fp16", "fp32"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Fp16, testing::ValuesIn(half_cases()));

// SGD steps as far as its gradients say, unlike AdamW, whose steps do not depend on their scale: gradients must be
// unscaled, and before they are clipped. The scale doubles every second step, so that a gradient divided by the scale
// of another step differs too.
class ScaledSgd : public testing::TestWithParam<const char*> {};

TEST_P(ScaledSgd, FollowsFp32) {
  constexpr std::int64_t kLong = 6;
  for (const char* clip : {"0", "0.5"}) {
    const Spec spec = spec_of(
        {kLlama, fmt::format("{}, global_batch: 4, clip: {}", GetParam(), clip), "sgd", "orrery", "fp16", "fp16"});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    const auto quick = [](Training& t) { t.loss_scale = 64, t.loss_scale_interval = 2; };
    const Result narrow = run(some, spec, {.steps = kLong, .training = quick});
    int rank = 0;
    MPI_Comm_rank(some, &rank);
    MPI_Comm_free(&some);
    if (rank > 0) continue;
    const Result wide = run(MPI_COMM_SELF, on_one_rank(spec), {.steps = kLong});
    for (std::int64_t s = 0; s < kLong; ++s) EXPECT_NEAR(narrow.losses[s] / wide.losses[s], 1, kLossLimit / 4) << clip;
    const auto exact = [&](const Tensors& x) { return without_key_biases(spec.model, x, false); };
    const auto [moved, of] = worst(exact(change(narrow)), exact(change(wide)));
    EXPECT_LE(moved, kNarrowChangeLimit / 4) << of << ", clip " << clip;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScaledSgd,
                         testing::Values("data: 2, sharding: zero1", "data: 2, sharding: fsdp",
                                         "tensor: 2, pipeline: 2, data: 1",
                                         "data: 2, sharding: zero1, offload: {optimizer: cpu}",
                                         "data: 2, sharding: zero2, offload: {optimizer: cpu, gradients: cpu}"));

// The gradients of a loss times 2^30 are infinite in fp16 until the scale has been halved often enough: all ranks skip
// those updates. The updates after them are those of one rank that skips the same.
TEST(Fp16LossScale, SkipsUpdatesOfInfiniteGradientsOnAllRanks) {
  constexpr std::int64_t kLong = 18;
  for (const char* strategy :
       {"data: 2, sharding: zero1, global_batch: 4, clip: 0.5", "pipeline: 2, data: 2, global_batch: 4",
        "data: 2, sharding: fsdp, global_batch: 4, clip: 0.5",
        "data: 2, sharding: zero1, offload: {optimizer: cpu}, global_batch: 4, clip: 0.5"}) {
    const Spec spec = spec_of({kLlama, strategy, "adamw", "orrery", "fp16", "fp16"});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    std::vector<float> scales;
    const auto note = [&](std::int64_t, const Rank& rank, const Buffers& b) {
      scales.push_back(*reinterpret_cast<const float*>(b.state(rank.plan.classes.front().frame, kLossScale)));
    };
    const auto loud = [](Training& t) { t.loss_scale = 0x1p30; };
    const Result many = run(some, spec, {.steps = kLong, .on_begin = note, .training = loud});
    int rank = 0;
    MPI_Comm_rank(some, &rank);
    double mine = scales.back(), least = 0, most = 0;
    MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, some);
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, some);
    MPI_Comm_free(&some);
    EXPECT_EQ(least, most) << strategy;  // every rank has the same scale
    EXPECT_EQ(scales.front(), 0x1p30F);
    EXPECT_LT(scales.back(), 0x1p24F) << strategy;
    if (rank > 0) continue;
    Spec one = on_one_rank(spec);
    one.strategy.precision = one.strategy.gradient_precision = Precision::fp16;
    const Result alone = run(MPI_COMM_SELF, one, {.steps = kLong, .on_begin = {}, .training = loud});
    for (std::int64_t s = 0; s < kLong; ++s) EXPECT_NEAR(many.losses[s] / alone.losses[s], 1, kLossLimit) << s;
    EXPECT_LT(many.losses.back(), many.losses.front() - 0.1);
  }
}

// With a scale that stays infinite, no update is made, and the weights keep their bits.
TEST(Fp16LossScale, AnUpdateThatIsSkippedChangesNothing) {
  const Spec spec = spec_of({kLlama, "data: 2, sharding: zero1, global_batch: 4", "adamw", "orrery", "fp16", "fp16"});
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  const Result result = run(some, spec, {.training = [](Training& t) { t.loss_scale = 0x1p120; }});
  int rank = 0;
  MPI_Comm_rank(some, &rank);
  MPI_Comm_free(&some);
  if (rank == 0) {
    EXPECT_EQ(result.weights, result.initial);
  }
}

// The scale doubles after as many good updates as the interval says.
TEST(Fp16LossScale, DoublesAfterUpdatesWithoutInfinity) {
  const Spec spec = spec_of({kLlama, "data: 1, global_batch: 2", "adamw", "orrery", "fp16", "fp32"});
  MPI_Comm some = ranks_for(spec);
  if (some == MPI_COMM_NULL) return;
  std::vector<float> scales;
  const auto note = [&](std::int64_t, const Rank& rank, const Buffers& b) {
    scales.push_back(*reinterpret_cast<const float*>(b.state(rank.plan.classes.front().frame, kLossScale)));
  };
  const auto quick = [](Training& t) { t.loss_scale = 64, t.loss_scale_interval = 2; };
  run(some, spec, {.steps = 5, .on_begin = note, .training = quick});
  MPI_Comm_free(&some);
  EXPECT_EQ(scales, (std::vector<float>{64, 64, 128, 128, 256}));
}

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
