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

}  // namespace
}  // namespace orrery::kernels
