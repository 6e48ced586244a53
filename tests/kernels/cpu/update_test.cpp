#include "kernels/cpu/update.h"

#include <gtest/gtest.h>

#include "kernels/reference/update.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

using Kind = UpdateRule::Kind;
constexpr std::int64_t kWeights = 77;
constexpr int kSteps = 5;

template <class Gradient, class Forward>
struct State {
  std::vector<float> weights = random_floats(kWeights, 1);
  std::vector<float> moment1 = std::vector<float>(kWeights), moment2 = std::vector<float>(kWeights);
  std::vector<Forward> forward = std::vector<Forward>(kWeights);

  void apply(const UpdateRule& rule, UpdateStep step, std::int64_t first, std::int64_t count,
             const std::vector<Gradient>& gradient) {
    update(rule, step, count, gradient.data() + first, weights.data() + first, moment1.data() + first,
           moment2.data() + first, forward.data() + first);
  }
};

std::vector<float> gradient_of_step(int step) { return random_floats(kWeights, static_cast<std::uint64_t>(10 + step)); }

TEST(Update, FiveStepsOfEveryRuleMatchTheReference) {
  for (const Kind kind : {Kind::adamw, Kind::adam, Kind::sgd}) {
    const UpdateRule rule = {.kind = kind, .learning_rate = 0.01, .beta2 = 0.95, .weight_decay = 0.1};
    State<float, float> state;
    std::vector<reference::WeightState<double>> expected(kWeights);
    for (std::int64_t i = 0; i < kWeights; ++i) expected[i].weight = state.weights[i];
    for (int step = 1; step <= kSteps; ++step) {
      const std::vector<float> gradient = gradient_of_step(step);
      state.apply(rule, {step, 0.5}, 0, kWeights, gradient);
      for (std::int64_t i = 0; i < kWeights; ++i) {
        expected[i] = reference::update<double>(rule, {step, 0.5}, gradient[i], expected[i]);
      }
    }
    std::vector<double> weights;
    for (const auto& s : expected) weights.push_back(s.weight);
    EXPECT_LT(relative_error(state.weights, weights), kFloatError);
    EXPECT_EQ(state.forward, state.weights);
  }
}

TEST(Update, ShardsGiveTheWhole) {
  const UpdateRule rule = {.learning_rate = 0.01, .weight_decay = 0.1};
  State<float, float> whole, shards;
  for (int step = 1; step <= kSteps; ++step) {
    whole.apply(rule, {step}, 0, kWeights, gradient_of_step(step));
    shards.apply(rule, {step}, 0, 40, gradient_of_step(step));
    shards.apply(rule, {step}, 40, kWeights - 40, gradient_of_step(step));
  }
  EXPECT_EQ(shards.weights, whole.weights);
}

TEST(Update, NarrowGradientsAndCopiesAreRoundedOnce) {
  State<Bf16, Bf16> narrow;
  State<float, float> wide_state;
  std::vector<Bf16> gradient;
  std::vector<float> same;
  for (const float g : gradient_of_step(1)) gradient.push_back(to_bf16(g));
  for (const Bf16 g : gradient) same.push_back(to_float(g));
  narrow.apply({}, {}, 0, kWeights, gradient);
  wide_state.apply({}, {}, 0, kWeights, same);
  EXPECT_EQ(narrow.weights, wide_state.weights);
  for (std::int64_t i = 0; i < kWeights; ++i) EXPECT_EQ(narrow.forward[i].bits, to_bf16(narrow.weights[i]).bits);
}

// An optimizer step that is undone and made again with clipped gradients gives the same weights as the clipped step
// alone, except for rounding.
TEST(Update, CanBeTakenBackAndMadeAgain) {
  for (const Kind kind : {Kind::adamw, Kind::adam, Kind::sgd}) {
    const UpdateRule rule = {.kind = kind, .learning_rate = 0.01, .beta2 = 0.95, .weight_decay = 0.1};
    State<float, Bf16> taken_back, plain;
    for (int step = 1; step <= kSteps; ++step) {
      const std::vector<float> gradient = gradient_of_step(step);
      const State<float, Bf16> before = taken_back;
      taken_back.apply(rule, {step}, 0, kWeights, gradient);
      undo_update(rule, step, kWeights, gradient.data(), taken_back.weights.data(), taken_back.moment1.data(),
                  taken_back.moment2.data(), taken_back.forward.data());
      const auto apart = [](const std::vector<float>& a, const std::vector<float>& b) {
        return relative_error(a, std::vector<double>(b.begin(), b.end()));
      };
      EXPECT_LT(apart(taken_back.weights, before.weights), 1e-6);
      if (step == 1) {
        EXPECT_EQ(taken_back.moment1, before.moment1);
        EXPECT_EQ(taken_back.moment2, before.moment2);
      }
      taken_back.apply(rule, {step, 0.25}, 0, kWeights, gradient);
      plain.apply(rule, {step, 0.25}, 0, kWeights, gradient);
      EXPECT_LT(apart(taken_back.weights, plain.weights), 1e-6) << step;
    }
  }
}

TEST(Update, ClippedIsWhatIsTooLongOrNotFinite) {
  EXPECT_FALSE(is_clipped(0.25, 1));
  EXPECT_TRUE(is_clipped(16, 1));
  EXPECT_TRUE(is_clipped(INFINITY, 1));
  EXPECT_TRUE(is_clipped(NAN, 1));
}

TEST(Update, SgdNeedsNoMoments) {
  std::vector<float> weights = {1, 2}, gradient = {1, -1};
  update<float, float>({.kind = Kind::sgd, .learning_rate = 0.5}, {}, 2, gradient.data(), weights.data(), nullptr,
                       nullptr, nullptr);
  EXPECT_EQ(weights, (std::vector<float>{0.5F, 2.5F}));
}

TEST(Update, ClipsOnlyWhatIsTooLong) {
  EXPECT_EQ(clip_factor(0.25, 1), 1);
  EXPECT_NEAR(clip_factor(16, 1), 0.25, 1e-6);
}

}  // namespace
}  // namespace orrery::kernels
