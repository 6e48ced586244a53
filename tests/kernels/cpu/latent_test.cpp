#include "kernels/cpu/latent.h"

#include <gtest/gtest.h>

#include "kernels/reference/rotary.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

constexpr LatentShape kLatentShape = {3, 5, 4, 7};
constexpr std::int64_t kLatentRows = 6, kLatentKey = 9, kLatentUp = 3 * 12, kLatentPacked = 3 * (9 + 7);
constexpr Positions kLatentPositions = {3, 2};
constexpr double kLatentTheta = 100;

// The packed values, each written down directly from its source.
template <class T>
std::vector<T> packed(const std::vector<T>& up, std::vector<T> rope) {
  reference::rotate<T>(kLatentShape.rope, kLatentTheta, kLatentPositions, false,
                       matrix(rope.data(), kLatentRows, kLatentShape.rope));
  std::vector<T> y(kLatentRows * kLatentPacked);
  for (std::int64_t r = 0; r < kLatentRows; ++r) {
    for (std::int64_t h = 0; h < kLatentShape.heads; ++h) {
      for (std::int64_t i = 0; i < kLatentKey; ++i)
        y[r * kLatentPacked + h * kLatentKey + i] = i < kLatentShape.nope
                                                        ? up[r * kLatentUp + h * 12 + i]
                                                        : rope[r * kLatentShape.rope + i - kLatentShape.nope];
      for (std::int64_t i = 0; i < kLatentShape.value; ++i)
        y[r * kLatentPacked + 3 * kLatentKey + h * kLatentShape.value + i] =
            up[r * kLatentUp + h * 12 + kLatentShape.nope + i];
    }
  }
  return y;
}

TEST(Latent, PackingMatchesItsReference) {
  const RotaryTable table = rotary_table(8, kLatentShape.rope, kLatentTheta);
  const std::vector<float> up = random_floats(kLatentRows * kLatentUp, 1),
                           rope = random_floats(kLatentRows * kLatentShape.rope, 2);
  std::vector<float> y(kLatentRows * kLatentPacked);
  pack_latent(table, kLatentPositions, kLatentShape, matrix(up.data(), kLatentRows, kLatentUp),
              matrix(rope.data(), kLatentRows, kLatentShape.rope), matrix(y.data(), kLatentRows, kLatentPacked));
  EXPECT_LT(relative_error(wide(y), packed(wide(up), wide(rope))), kFloatError);
}

TEST(Latent, UnpackingIsTheDerivative) {
  const RotaryTable table = rotary_table(8, kLatentShape.rope, kLatentTheta);
  const std::vector<float> up = random_floats(kLatentRows * kLatentUp, 1),
                           rope = random_floats(kLatentRows * kLatentShape.rope, 2);
  const std::vector<float> dy = random_floats(kLatentRows * kLatentPacked, 3);
  std::vector<float> dup(up.size()), drope(rope.size());
  unpack_latent(table, kLatentPositions, kLatentShape, matrix(dy.data(), kLatentRows, kLatentPacked),
                matrix(dup.data(), kLatentRows, kLatentUp), matrix(drope.data(), kLatentRows, kLatentShape.rope));
  const auto of_up = [&](const std::vector<double>& x) { return packed(x, wide(rope)); };
  const auto of_rope = [&](const std::vector<double>& x) { return packed(wide(up), x); };
  EXPECT_LT(relative_error(wide(dup), finite_differences(wide(up), wide(dy), of_up)), kFloatError);
  EXPECT_LT(relative_error(wide(drope), finite_differences(wide(rope), wide(dy), of_rope)), kFloatError);
}

TEST(Latent, QueriesAreRotatedHeadByHead) {
  const RotaryTable table = rotary_table(8, kLatentShape.rope, kLatentTheta);
  Operand q(kLatentRows, 3 * kLatentKey, 0, 1);
  rotate_queries(table, kLatentPositions, false, kLatentShape, q.view);
  for (std::int64_t h = 0; h < kLatentShape.heads; ++h)
    reference::rotate<double>(kLatentShape.rope, kLatentTheta, kLatentPositions, false,
                              columns_of(q.reference, h * kLatentKey + kLatentShape.nope, kLatentShape.rope));
  EXPECT_LT(q.error(), kFloatError);
}

// A token is chosen if fewer than top_k earlier tokens, or equal ones before it, have a higher score.
TEST(Latent, IndexChoosesTheKeysWithTheHighestScores) {
  constexpr std::int64_t kHeads = 3, kWidth = 4, kBefore = 5, kQueries = 6, kKeys = kBefore + kQueries, kMost = 4;
  const std::vector<float> q = random_floats(kQueries * kHeads * kWidth, 1), k = random_floats(kKeys * kWidth, 2),
                           w = random_floats(kQueries * kHeads, 3);
  std::vector<std::int32_t> chosen(kQueries * kMost);
  choose_tokens({kHeads, kWidth, kMost}, matrix(q.data(), kQueries, kHeads * kWidth), matrix(k.data(), kKeys, kWidth),
                matrix(w.data(), kQueries, kHeads), kBefore, chosen.data());
  for (std::int64_t row = 0; row < kQueries; ++row) {
    std::vector<double> scores;
    for (std::int64_t key = 0; key <= kBefore + row; ++key) {
      double sum = 0;
      for (std::int64_t h = 0; h < kHeads; ++h) {
        double product = 0;
        for (std::int64_t i = 0; i < kWidth; ++i)
          product += static_cast<double>(q[(row * kHeads + h) * kWidth + i]) * k[key * kWidth + i];
        sum += w[row * kHeads + h] * (product > 0 ? product : 0);
      }
      scores.push_back(sum);
    }
    std::vector<std::int32_t> expected;
    for (std::size_t key = 0; key < scores.size(); ++key) {
      std::int64_t better = 0;
      for (std::size_t other = 0; other < scores.size(); ++other)
        better += scores[other] > scores[key] || (scores[other] == scores[key] && other < key) ? 1 : 0;
      if (better < kMost) expected.push_back(static_cast<std::int32_t>(key));
    }
    EXPECT_EQ(std::vector(chosen.begin() + row * kMost, chosen.begin() + (row + 1) * kMost), expected) << row;
  }
}

TEST(Latent, IndexMarksMissingKeys) {
  const std::vector<float> q = {1, 1, 1}, k = {1, 2, 3}, w = {1, 1, 1};
  std::vector<std::int32_t> chosen(3 * 2);
  choose_tokens({1, 1, 2}, matrix(q.data(), 3, 1), matrix(k.data(), 3, 1), matrix(w.data(), 3, 1), 0, chosen.data());
  EXPECT_EQ(chosen, (std::vector<std::int32_t>{0, -1, 0, 1, 1, 2}));
}

}  // namespace
}  // namespace orrery::kernels
