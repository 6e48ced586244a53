#include "kernels/cpu/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"

namespace orrery::kernels {

void add_momentum(const UpdateRule& rule, double gradient_factor, std::int64_t n, float* gradient, float* moment) {
  const auto factor = static_cast<float>(gradient_factor), momentum = static_cast<float>(rule.momentum);
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] * factor;
    moment[i] = momentum * moment[i] + g;
    gradient[i] = g + momentum * moment[i];
  }
}

// Makes one Newton-Schulz iteration of x (rows, columns) with rows <= columns; y receives the result.
static void iterate(Matrix<const float> x, Matrix<float> square, Matrix<float> polynomial, Matrix<float> y) {
  const auto f = [](double c) { return static_cast<float>(c); };
  multiply({.b = true}, 1, x, x, 0, square);
  copy(square, polynomial);
  multiply({}, f(kNewtonSchulz[2]), square, square, f(kNewtonSchulz[1]), polynomial);
  copy(x, y);
  multiply({}, 1, polynomial, x, f(kNewtonSchulz[0]), y);
}

void orthogonalize(std::int64_t iterations, Matrix<float> x) {
  const bool transposed = x.rows > x.columns;
  const std::int64_t rows = std::min(x.rows, x.columns), columns = std::max(x.rows, x.columns);
  double norm = 0;
  for (std::int64_t r = 0; r < x.rows; ++r) norm += squared_norm(x.columns, x.row(r));
  const auto scale = static_cast<float>(1 / (std::sqrt(norm) + kFrobeniusEpsilon));
  const auto element = [&](std::int64_t r, std::int64_t c) -> float& { return transposed ? x.row(c)[r] : x.row(r)[c]; };
  std::vector<float> from(static_cast<std::size_t>(rows * columns)), to = from;
  std::vector<float> square(static_cast<std::size_t>(rows * rows)), polynomial = square;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) from[r * columns + c] = scale * element(r, c);
  }
  for (std::int64_t i = 0; i < iterations; ++i) {
    iterate(matrix<const float>(from.data(), rows, columns), matrix(square.data(), rows, rows),
            matrix(polynomial.data(), rows, rows), matrix(to.data(), rows, columns));
    std::swap(from, to);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) element(r, c) = from[r * columns + c];
  }
}

void muon_step(const UpdateRule& rule, std::int64_t rows, std::int64_t columns, std::int64_t n, const float* direction,
               float* weights) {
  const auto rate =
      static_cast<float>(rule.learning_rate * 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns))));
  const auto shrink = static_cast<float>(1 - rule.learning_rate * rule.weight_decay);
  for (std::int64_t i = 0; i < n; ++i) weights[i] = shrink * weights[i] - rate * direction[i];
}

}  // namespace orrery::kernels
