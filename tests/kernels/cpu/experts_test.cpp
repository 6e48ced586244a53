#include "kernels/cpu/experts.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "kernels/reference/experts.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

constexpr std::int64_t kRoutedTokens = 12;
// Top-1 and top-k, softmax and sigmoid, dropless, dropped, padded, in runs, with the auxiliary loss and without.
const GateShape kGates[] = {
    {4, 1, 0, 1, false, false, 0},    {4, 1, 2, 1, false, false, 0.1}, {6, 2, 0, 1, false, false, 0.1},
    {6, 3, 4, 2, false, false, 0.05}, {6, 2, 0, 3, false, true, 0.1},  {8, 3, 2, 2, true, true, 0.1},
    {5, 5, 0, 1, false, false, 0.2},  {6, 2, 3, 1, true, false, 0},
};

struct Chosen {
  explicit Chosen(const GateShape& s, std::vector<float> x, const float* bias = nullptr)
      : shape(s), logits(std::move(x)) {
    scores.resize(logits.size());
    weights.resize(kRoutedTokens * s.top_k);
    experts.resize(weights.size());
    places.resize(weights.size());
    counts.resize(s.experts);
    choose_experts(matrix<const float>(logits.data(), kRoutedTokens, s.experts), s, bias, routing());
  }
  Routing routing() { return {scores.data(), weights.data(), experts.data(), places.data(), counts.data()}; }

  GateShape shape;
  std::vector<float> logits, scores, weights;
  std::vector<std::int32_t> experts, places, counts;
};

Chosen chosen(const GateShape& s) { return Chosen(s, random_floats(kRoutedTokens * s.experts, 1)); }

TEST(Experts, WeightsMatchTheReference) {
  for (const GateShape& s : kGates) {
    Chosen c = chosen(s);
    std::vector<double> expected = reference::weights_and_loss(wide(c.logits), s, c.experts, c.places);
    expected.pop_back();
    EXPECT_LT(relative_error(wide(c.weights), expected), kFloatError);
  }
}

// A token's experts are in the best groups of experts: groups are compared by their best expert (DeepSeek-V2,
// arXiv:2405.04434, section 2.1.2.2) or, with a correction bias, by their two best (V3, 2412.19437, section 2.1.2).
TEST(Experts, ATokensExpertsAreOfItsBestGroups) {
  GateShape s = {.experts = 8, .top_k = 2, .expert_groups = 4, .top_groups = 1};
  std::vector<float> logits;
  for (std::int64_t t = 0; t < kRoutedTokens; ++t) logits.insert(logits.end(), {0, 9, 5, 6, 1, 1, 2, 2});
  const Chosen plain(s, logits);
  EXPECT_EQ(plain.experts[0], 1);
  EXPECT_EQ(plain.experts[1], 0);
  s.sigmoid = true;
  const std::vector<float> bias(8, 0.0F);
  const Chosen corrected(s, logits, bias.data());
  EXPECT_EQ(corrected.experts[0], 3);
  EXPECT_EQ(corrected.experts[1], 2);
}

TEST(Experts, TheChoiceIsTheLargestAndOfEqualOnesTheLower) {
  for (const GateShape& s : kGates) {
    Chosen c = chosen(s);
    for (std::int64_t t = 0; t < kRoutedTokens; ++t) {
      for (std::int64_t j = 0; j + 1 < s.top_k; ++j)
        EXPECT_GE(c.logits[t * s.experts + c.experts[t * s.top_k + j]],
                  c.logits[t * s.experts + c.experts[t * s.top_k + j + 1]]);
    }
  }
  Chosen equal(kGates[2], std::vector<float>(kRoutedTokens * 6, 1.0F));
  for (std::int64_t t = 0; t < kRoutedTokens; ++t) {
    EXPECT_EQ(equal.experts[2 * t], 0);
    EXPECT_EQ(equal.experts[2 * t + 1], 1);
  }
  const std::vector<float> bias = {0, 0, 0, 9, 0, 8};
  Chosen steered(kGates[4], random_floats(kRoutedTokens * 6, 1), bias.data());
  for (std::int64_t t = 0; t < kRoutedTokens; ++t) EXPECT_EQ(steered.experts[2 * t] + steered.experts[2 * t + 1], 8);
}

// Rows lie expert by expert, tokens in order, no two in one place; an expert takes at most its capacity of a run.
TEST(Experts, PlacesAreInOrderAndWithinCapacity) {
  for (const GateShape& s : kGates) {
    Chosen c = chosen(s);
    std::map<std::int32_t, std::int64_t> at;  // choice by place
    std::map<std::pair<std::int64_t, std::int32_t>, std::int64_t> taken, asked;
    for (std::int64_t i = 0; i < std::ssize(c.places); ++i) {
      const std::pair<std::int64_t, std::int32_t> key = {i * s.groups / std::ssize(c.places), c.experts[i]};
      ++asked[key];
      if (c.places[i] < 0) continue;
      ++taken[key];
      EXPECT_TRUE(at.emplace(c.places[i], i).second);
    }
    for (const auto& [key, n] : taken) EXPECT_EQ(n, s.capacity == 0 ? asked[key] : std::min(s.capacity, asked[key]));
    std::int32_t expert = 0;
    std::int64_t before = -1;
    for (const auto& [place, i] : at) {
      EXPECT_GE(c.experts[i], expert);
      EXPECT_TRUE(c.experts[i] != expert || i > before);
      expert = c.experts[i];
      before = i;
    }
    const std::int64_t rows = std::accumulate(c.counts.begin(), c.counts.end(), std::int64_t{0});
    EXPECT_EQ(rows, s.padded ? s.experts * s.capacity * s.groups : std::ssize(at));
  }
}

TEST(Experts, TheGradientIsTheDerivative) {
  for (const GateShape& s : kGates) {
    Chosen c = chosen(s);
    constexpr double kPerToken = 0.25;  // factor of the auxiliary loss per token
    const std::vector<float> dweights = random_floats(kRoutedTokens * s.top_k, 2);
    std::vector<float> dlogits(c.logits.size());
    choose_experts_gradient(c.routing(), dweights.data(), s, kPerToken,
                            matrix(dlogits.data(), kRoutedTokens, s.experts));
    std::vector<double> dy = wide(dweights);
    dy.push_back(kPerToken);
    const auto f = [&](const std::vector<double>& x) { return reference::weights_and_loss(x, s, c.experts, c.places); };
    EXPECT_LT(relative_error(wide(dlogits), finite_differences(wide(c.logits), dy, f)), 10 * kFloatError);
  }
}

// Two ranks with half of the tokens each, who know how often each expert was chosen on both, compute the gradients of
// one rank.
TEST(Experts, RanksThatShareTokensBalanceAllOfThem) {
  const GateShape s = {.experts = 6, .top_k = 2, .aux_loss = 0.5};
  Chosen all = chosen(s);
  const std::int64_t half = kRoutedTokens / 2;
  const std::vector<float> dweights(static_cast<std::size_t>(kRoutedTokens * s.top_k), 0.0F);
  std::vector<float> counts(static_cast<std::size_t>(s.experts)), want(all.logits.size()), got(all.logits.size());
  choose_experts_gradient(all.routing(), dweights.data(), s, 1, matrix(want.data(), kRoutedTokens, s.experts));
  count_choices(all.experts.data(), kRoutedTokens * s.top_k, s.experts, counts.data());
  for (const std::int64_t first : {std::int64_t{0}, half}) {
    Routing part = all.routing();
    part.scores += first * s.experts;
    part.experts += first * s.top_k;
    part.places += first * s.top_k;
    choose_experts_gradient(part, dweights.data(), s, 1, matrix(got.data() + first * s.experts, half, s.experts),
                            counts.data(), 2);
  }
  EXPECT_EQ(got, want);
}

// sum_rows() is the transpose of expand_rows(): <expand(x), y> = <x, sum(y)>.
TEST(Experts, SumIsTheTransposeOfExpand) {
  for (const GateShape& s : kGates) {
    Chosen c = chosen(s);
    const std::int64_t rows = std::accumulate(c.counts.begin(), c.counts.end(), std::int64_t{0});
    const std::vector<float> x = random_floats(kRoutedTokens * 3, 3), y = random_floats(rows * 3, 4);
    std::vector<float> out(y.size()), back(x.size());
    expand_rows(matrix(x.data(), kRoutedTokens, 3), c.places.data(), s.top_k, matrix(out.data(), rows, 3));
    sum_rows(matrix(y.data(), rows, 3), c.places.data(), s.top_k, matrix(back.data(), kRoutedTokens, 3));
    EXPECT_NEAR(std::inner_product(out.begin(), out.end(), y.begin(), 0.0),
                std::inner_product(x.begin(), x.end(), back.begin(), 0.0), 1e-4);
  }
}

TEST(Experts, ChunksAreSortedAndPutBack) {
  const std::vector<std::int32_t> counts = {2, 0, 1, 1, 3, 2};  // 2 sources of 3 experts
  std::vector<float> x(9), y(9), back(9);
  std::iota(x.begin(), x.end(), 0.0F);
  sort_chunks(matrix(x.data(), 9, 1), counts.data(), 2, 3, false, matrix(y.data(), 9, 1));
  EXPECT_EQ(y, (std::vector<float>{0, 1, 3, 4, 5, 6, 2, 7, 8}));
  sort_chunks(matrix(y.data(), 9, 1), counts.data(), 2, 3, true, matrix(back.data(), 9, 1));
  EXPECT_EQ(back, x);
}

TEST(Experts, RowsAreScaledAndMultiplied) {
  std::vector<float> x = {1, 2, 3, 4};
  const std::vector<float> y = {5, 6, 7, 8}, factors = {2, 3};
  std::vector<float> products(2);
  row_products(matrix(x.data(), 2, 2), matrix(y.data(), 2, 2), products.data());
  EXPECT_EQ(products, (std::vector<float>{17, 53}));
  scale_rows(factors.data(), matrix(x.data(), 2, 2));
  EXPECT_EQ(x, (std::vector<float>{2, 4, 9, 12}));
}

}  // namespace
}  // namespace orrery::kernels
