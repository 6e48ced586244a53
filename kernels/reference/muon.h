#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

// Reference implementation of kernels/cpu/muon.h for one complete matrix (rows, columns), by plain loops in double.
namespace orrery::kernels::reference {

using Numbers = std::vector<double>;

// Returns the product a (rows, inner) b (inner, columns).
inline Numbers product(const Numbers& a, const Numbers& b, std::size_t rows, std::size_t inner, std::size_t columns) {
  Numbers c(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t k = 0; k < inner; ++k) c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
    }
  }
  return c;
}

// Five iterations X <- 3.4445 X - 4.7750 X X^T X + 2.0315 X X^T X X^T X of X / (||X|| + 1e-7), as the polynomial stands
// in Jordan's post, for matrices of any shape.
inline Numbers orthogonal(Numbers x, std::size_t rows, std::size_t columns) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::sqrt(squares) + 1e-7;
  for (int i = 0; i < 5; ++i) {
    Numbers transposed(columns * rows);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) transposed[c * rows + r] = x[r * columns + c];
    }
    const Numbers square = product(transposed, x, columns, rows, columns);
    const Numbers third = product(x, square, rows, columns, columns);
    const Numbers fifth = product(third, square, rows, columns, columns);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = 3.4445 * x[k] - 4.7750 * third[k] + 2.0315 * fifth[k];
  }
  return x;
}

struct MuonState {
  Numbers weights, moment;
};

// One step: B <- mu B + G; W <- W - rate (0.2 sqrt(max(rows, columns)) O + decay W) with O the orthogonal G + mu B.
inline MuonState muon(MuonState s, const Numbers& gradient, std::size_t rows, std::size_t columns, double mu,
                      double rate, double decay) {
  Numbers direction(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    s.moment[i] = mu * s.moment[i] + gradient[i];
    direction[i] = gradient[i] + mu * s.moment[i];
  }
  const Numbers o = orthogonal(direction, rows, columns);
  const double scale = 0.2 * std::sqrt(static_cast<double>(rows > columns ? rows : columns));
  for (std::size_t i = 0; i < o.size(); ++i) s.weights[i] -= rate * (scale * o[i] + decay * s.weights[i]);
  return s;
}

}  // namespace orrery::kernels::reference
