#include "kernels/latent.h"

#include <gtest/gtest.h>

#include "kernels/rotary_reference.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

constexpr LatentShape kShape = {3, 5, 4, 7};
constexpr std::int64_t kRows = 6, kKey = 9, kUp = 3 * 12, kPacked = 3 * (9 + 7);
constexpr Positions kPositions = {3, 2};
constexpr double kTheta = 100;

// Where every packed value comes from, written down directly.
template <class T>
std::vector<T> packed(const std::vector<T>& up, std::vector<T> rope) {
  reference::rotate<T>(kShape.rope, kTheta, kPositions, false, matrix(rope.data(), kRows, kShape.rope));
  std::vector<T> y(kRows * kPacked);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t h = 0; h < kShape.heads; ++h) {
      for (std::int64_t i = 0; i < kKey; ++i)
        y[r * kPacked + h * kKey + i] = i < kShape.nope ? up[r * kUp + h * 12 + i] : rope[r * kShape.rope + i - kShape.nope];
      for (std::int64_t i = 0; i < kShape.value; ++i)
        y[r * kPacked + 3 * kKey + h * kShape.value + i] = up[r * kUp + h * 12 + kShape.nope + i];
    }
  }
  return y;
}

TEST(Latent, PackingMatchesItsReference) {
  const RotaryTable table = rotary_table(8, kShape.rope, kTheta);
  const std::vector<float> up = random_floats(kRows * kUp, 1), rope = random_floats(kRows * kShape.rope, 2);
  std::vector<float> y(kRows * kPacked);
  pack_latent(table, kPositions, kShape, matrix(up.data(), kRows, kUp), matrix(rope.data(), kRows, kShape.rope),
              matrix(y.data(), kRows, kPacked));
  EXPECT_LT(relative_error(wide(y), packed(wide(up), wide(rope))), kFloatError);
}

TEST(Latent, UnpackingIsTheDerivative) {
  const RotaryTable table = rotary_table(8, kShape.rope, kTheta);
  const std::vector<float> up = random_floats(kRows * kUp, 1), rope = random_floats(kRows * kShape.rope, 2);
  const std::vector<float> dy = random_floats(kRows * kPacked, 3);
  std::vector<float> dup(up.size()), drope(rope.size());
  unpack_latent(table, kPositions, kShape, matrix(dy.data(), kRows, kPacked), matrix(dup.data(), kRows, kUp),
                matrix(drope.data(), kRows, kShape.rope));
  const auto of_up = [&](const std::vector<double>& x) { return packed(x, wide(rope)); };
  const auto of_rope = [&](const std::vector<double>& x) { return packed(wide(up), x); };
  EXPECT_LT(relative_error(wide(dup), finite_differences(wide(up), wide(dy), of_up)), kFloatError);
  EXPECT_LT(relative_error(wide(drope), finite_differences(wide(rope), wide(dy), of_rope)), kFloatError);
}

TEST(Latent, QueriesAreRotatedHeadByHead) {
  const RotaryTable table = rotary_table(8, kShape.rope, kTheta);
  Operand q(kRows, 3 * kKey, 0, 1);
  rotate_queries(table, kPositions, false, kShape, q.view);
  for (std::int64_t h = 0; h < kShape.heads; ++h)
    reference::rotate<double>(kShape.rope, kTheta, kPositions, false,
                              columns_of(q.reference, h * kKey + kShape.nope, kShape.rope));
  EXPECT_LT(q.error(), kFloatError);
}

}  // namespace
}  // namespace orrery::kernels
