#include "kernels/cpu/adafactor.h"

#include <algorithm>
#include <cmath>

namespace orrery::kernels {
namespace {

// Calls f(i, row, column) for each element: i counts the elements from the first one, and row and column are those of
// the complete tensor.
template <class F>
void for_elements(const TensorElements& of, const F& f) {
  for (std::int64_t i = 0; i < of.count; ++i) {
    const std::int64_t element = of.first + i;
    f(i, of.rows[element / of.in], of.column + element % of.in);
  }
}

}  // namespace

double square_decay(std::int64_t step) { return 1 - std::pow(static_cast<double>(step), -kSquareExponent); }

double adafactor_rate(const UpdateRule& rule, std::int64_t step, double weights) {
  const double relative = std::min(rule.learning_rate, 1 / std::sqrt(static_cast<double>(step)));
  return std::max(kWeightEpsilon, weights) * relative;
}

double update_clip(double root_mean_square) { return 1 / std::max(1.0, root_mean_square / kUpdateLimit); }

void add_squares(const TensorElements& of, double gradient_factor, double epsilon, const float* gradient, double* rows,
                 double* columns) {
  for_elements(of, [&](std::int64_t i, std::int64_t row, std::int64_t column) {
    const double g = gradient[i] * gradient_factor, square = g * g + epsilon;
    rows[row] += square;
    if (columns != nullptr) columns[column] += square;
  });
}

InverseRoots inverse_roots(const float* rows, std::int64_t row_count, const float* columns, std::int64_t column_count) {
  InverseRoots roots;
  double sum = 0;
  for (std::int64_t r = 0; r < row_count; ++r) sum += rows[r];
  if (columns == nullptr) sum = 1;
  for (std::int64_t r = 0; r < row_count; ++r) roots.rows.push_back(static_cast<float>(std::sqrt(sum / rows[r])));
  for (std::int64_t c = 0; c < column_count; ++c)
    roots.columns.push_back(static_cast<float>(columns == nullptr ? 1 : 1 / std::sqrt(double{columns[c]})));
  return roots;
}

void add_norms(const TensorElements& of, const InverseRoots& roots, double gradient_factor, const float* gradient,
               const float* weights, TensorNorms& sums) {
  for_elements(of, [&](std::int64_t i, std::int64_t row, std::int64_t column) {
    const double update = gradient[i] * gradient_factor * roots.rows[row] * roots.columns[column];
    sums.update += update * update;
    sums.weights += double{weights[i]} * weights[i];
  });
}

void adafactor_step(const TensorElements& of, const InverseRoots& roots, double gradient_factor, double shrink,
                    double rate, const float* gradient, float* weights) {
  for_elements(of, [&](std::int64_t i, std::int64_t row, std::int64_t column) {
    const double update = gradient[i] * gradient_factor * roots.rows[row] * roots.columns[column];
    weights[i] = static_cast<float>(shrink * weights[i] - rate * update);
  });
}

}  // namespace orrery::kernels
