#include "kernels/cpu/softmax.h"

#include <gtest/gtest.h>

#include "kernels/reference/attention.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

TEST(Softmax, MatchesItsReference) {
  for (const CausalMask& mask : {CausalMask{}, CausalMask{.window = 3}, CausalMask{.query_offset = 2}}) {
    const std::vector<float> scores = random_floats(24 * 19, 1), gradient = random_floats(24 * 19, 2);
    std::vector<float> p(scores.size()), g = gradient;
    masked_softmax(matrix(scores.data(), 24, 19), 12, mask, matrix(p.data(), 24, 19));
    softmax_gradient(matrix<const float>(p.data(), 24, 19), matrix(g.data(), 24, 19));
    const std::vector<double> wide_scores = wide(scores);
    std::vector<double> wide_p(p.size()), wide_g = wide(gradient);
    reference::masked_softmax<double>(matrix(wide_scores.data(), 24, 19), 12, mask, matrix(wide_p.data(), 24, 19));
    reference::softmax_gradient<double>(matrix<const double>(wide_p.data(), 24, 19), matrix(wide_g.data(), 24, 19));
    EXPECT_LT(relative_error(p, wide_p), kFloatError);
    EXPECT_LT(relative_error(g, wide_g), kFloatError);
  }
}

TEST(Softmax, ReferenceGradientIsTheDerivative) {
  const CausalMask mask = {.window = 4, .query_offset = 1};
  const std::vector<double> scores = wide(random_floats(6 * 7, 1)), dp = wide(random_floats(6 * 7, 2));
  const auto forward = [&](const std::vector<double>& x) {
    std::vector<double> p(x.size());
    reference::masked_softmax<double>(seen(x, 7), 3, mask, seen(p, 7));
    return p;
  };
  std::vector<double> p = forward(scores), ds = dp;
  reference::softmax_gradient<double>(seen(p, 7), seen(ds, 7));
  EXPECT_LT(relative_error(ds, finite_differences(scores, dp, forward)), kDifferenceError);
}

}  // namespace
}  // namespace orrery::kernels
