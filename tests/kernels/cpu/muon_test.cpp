#include "kernels/cpu/muon.h"

#include <gtest/gtest.h>

#include "kernels/reference/muon.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

struct MuonShape {
  std::int64_t rows, columns;
};

// Wide, tall and square matrices, and one row.
constexpr MuonShape kMuonShapes[] = {{12, 31}, {40, 9}, {16, 16}, {1, 20}};

TEST(Muon, OrthogonalizesAsTheReference) {
  for (const auto& [rows, columns] : kMuonShapes) {
    std::vector<float> x = random_floats(rows * columns, 3);
    const auto expected =
        reference::orthogonal(wide(x), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
    orthogonalize(5, matrix(x.data(), rows, columns));
    EXPECT_LT(relative_error(x, expected), 10 * kFloatError) << rows << " x " << columns;
  }
}

// Jordan's coefficients bring singular values into a range around 1, not to 1: about 0.5 to 1.5 (Keller Jordan 2024,
// "Muon: An optimizer for hidden layers in neural networks"). Their root mean square is the square root of the trace of
// X X^T / rows.
TEST(Muon, SingularValuesComeNearOne) {
  for (const auto& [rows, columns] : kMuonShapes) {
    std::vector<float> x = random_floats(rows * columns, 4);
    orthogonalize(5, matrix(x.data(), rows, columns));
    double squares = 0;
    for (const float v : x) squares += double{v} * v;
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(std::min(rows, columns))), 1, 0.5);
  }
}

TEST(Muon, AMatrixOfZerosStaysZero) {
  std::vector<float> x(6 * 9);
  orthogonalize(5, matrix(x.data(), 6, 9));
  for (const float v : x) EXPECT_EQ(v, 0);
}

TEST(Muon, FiveStepsMatchTheReference) {
  const UpdateRule rule = {.kind = UpdateRule::Kind::muon, .learning_rate = 0.01, .weight_decay = 0.1};
  for (const auto& [rows, columns] : kMuonShapes) {
    const std::int64_t n = rows * columns;
    std::vector<float> weights = random_floats(n, 1), moment(static_cast<std::size_t>(n));
    reference::MuonState expected = {wide(weights), reference::Numbers(static_cast<std::size_t>(n))};
    for (std::uint64_t step = 1; step <= 5; ++step) {
      std::vector<float> gradient = random_floats(n, 10 + step);
      reference::Numbers halved = wide(gradient);
      for (double& g : halved) g *= 0.5;
      expected = reference::muon(expected, halved, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns),
                                 0.95, 0.01, 0.1);
      add_momentum(rule, 0.5, n, gradient.data(), moment.data());
      orthogonalize(5, matrix(gradient.data(), rows, columns));
      muon_step(rule, rows, columns, n, gradient.data(), weights.data());
    }
    EXPECT_LT(relative_error(moment, expected.moment), kFloatError);
    EXPECT_LT(relative_error(weights, expected.weights), kFloatError);
  }
}

}  // namespace
}  // namespace orrery::kernels
