#include "kernels/cpu/adafactor.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/reference/adafactor.h"
#include "tests/kernels/random.h"

namespace orrery::kernels {
namespace {

// A tensor that `parts` ranks hold rows of: every rank adds to the same sums, and updates its rows.
struct Trial {
  std::int64_t rows, columns;
  int parts = 1;
  std::vector<float> weights = random_floats(rows * columns, 1);
  std::vector<float> row_sums = std::vector<float>(static_cast<std::size_t>(rows));
  std::vector<float> column_sums = std::vector<float>(static_cast<std::size_t>(columns > 1 ? columns : 0));
  std::vector<std::int64_t> numbers = std::vector<std::int64_t>(static_cast<std::size_t>(rows));

  std::vector<TensorElements> cut() {
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<TensorElements> result;
    const std::int64_t all = rows * columns, each = (all + parts - 1) / parts;
    for (std::int64_t first = 0; first < all; first += each)
      result.push_back({columns, first, std::min(each, all - first), numbers.data(), 0});
    return result;
  }

  void step(const UpdateRule& rule, std::int64_t number, double factor, const std::vector<float>& gradient) {
    const double decay = square_decay(number);
    std::vector<double> fresh_rows(row_sums.size()), fresh_columns(column_sums.size());
    double* columns_at = columns > 1 ? fresh_columns.data() : nullptr;
    for (const TensorElements& e : cut())
      add_squares(e, factor, UpdateRule().square_epsilon, gradient.data() + e.first, fresh_rows.data(), columns_at);
    const auto add = [&](std::vector<float>& sums, const std::vector<double>& fresh) {
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = static_cast<float>(decay * sums[i] + (1 - decay) * fresh[i]);
    };
    add(row_sums, fresh_rows);
    add(column_sums, fresh_columns);
    const InverseRoots roots =
        inverse_roots(row_sums.data(), rows, columns > 1 ? column_sums.data() : nullptr, columns);
    TensorNorms norms;
    for (const TensorElements& e : cut())
      add_norms(e, roots, factor, gradient.data() + e.first, weights.data() + e.first, norms);
    const auto mean = [&](double sum) { return std::sqrt(sum / static_cast<double>(rows * columns)); };
    const double rate = adafactor_rate(rule, number, mean(norms.weights)) * update_clip(mean(norms.update));
    for (const TensorElements& e : cut())
      adafactor_step(e, roots, factor, 1, rate, gradient.data() + e.first, weights.data() + e.first);
  }
};

TEST(Adafactor, FiveStepsMatchTheReference) {
  const UpdateRule rule = {.kind = UpdateRule::Kind::adafactor, .learning_rate = kLargestStep};
  for (const auto& [rows, columns] : {std::pair{13, 22}, std::pair{40, 7}, std::pair{50, 1}}) {
    Trial whole = {rows, columns}, cut = {rows, columns, 3};
    reference::AdafactorState expected = {wide(whole.weights), {}, {}, {}};
    for (std::int64_t step = 1; step <= 5; ++step) {
      const std::vector<float> gradient = random_floats(rows * columns, static_cast<std::uint64_t>(10 + step));
      std::vector<double> halved = wide(gradient);
      for (double& g : halved) g *= 0.5;
      expected = reference::adafactor(expected, halved, static_cast<std::size_t>(rows),
                                      static_cast<std::size_t>(columns), static_cast<double>(step), kLargestStep);
      whole.step(rule, step, 0.5, gradient);
      cut.step(rule, step, 0.5, gradient);
    }
    EXPECT_LT(relative_error(whole.weights, expected.weights), kFloatError);
    EXPECT_LT(relative_error(whole.row_sums, columns > 1 ? expected.rows : expected.squares), kFloatError);
    EXPECT_LT(relative_error(cut.weights, expected.weights), kFloatError);
  }
}

// A gradient that suddenly grows makes an update whose root mean square is above 1, which is clipped; weights of zero
// move as if their root mean square were epsilon_2.
TEST(Adafactor, ClipsUpdatesAndMovesZeros) {
  EXPECT_EQ(update_clip(0.5), 1);
  EXPECT_EQ(update_clip(4), 0.25);
  const UpdateRule rule = {.kind = UpdateRule::Kind::adafactor, .learning_rate = kLargestStep};
  EXPECT_EQ(adafactor_rate(rule, 1, 0), kWeightEpsilon * kLargestStep);
  EXPECT_EQ(adafactor_rate(rule, 1'000'000, 2), 2 * 1e-3);
  EXPECT_EQ(square_decay(1), 0);
}

}  // namespace
}  // namespace orrery::kernels
