#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// Reference implementation of kernels/cpu/adafactor.h for one complete tensor, by plain loops in double, as algorithms
// 4 (matrices) and 5 (vectors) of Shazeer and Stern 2018 (1804.04235) state them.
namespace orrery::kernels::reference {

struct AdafactorState {
  std::vector<double> weights, rows, columns, squares;
};

inline double root_mean_square(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Step number t of a matrix (rows, columns) with columns > 1, or of a vector of `rows` elements.
inline AdafactorState adafactor(AdafactorState s, const std::vector<double>& gradient, std::size_t rows,
                                std::size_t columns, double t, double largest) {
  const double step = std::min(largest, 1 / std::sqrt(t)) * std::max(1e-3, root_mean_square(s.weights));
  const double decay = 1 - std::pow(t, -0.8);
  std::vector<double> update(gradient.size());
  if (columns > 1) {
    s.rows.resize(rows);
    s.columns.resize(columns);
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c) sum += std::pow(gradient[r * columns + c], 2) + 1e-30;
      s.rows[r] = decay * s.rows[r] + (1 - decay) * sum;
    }
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < rows; ++r) sum += std::pow(gradient[r * columns + c], 2) + 1e-30;
      s.columns[c] = decay * s.columns[c] + (1 - decay) * sum;
    }
    double all = 0;
    for (const double r : s.rows) all += r;
    for (std::size_t i = 0; i < update.size(); ++i)
      update[i] = gradient[i] / std::sqrt(s.rows[i / columns] * s.columns[i % columns] / all);
  } else {
    s.squares.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      s.squares[i] = decay * s.squares[i] + (1 - decay) * (std::pow(gradient[i], 2) + 1e-30);
      update[i] = gradient[i] / std::sqrt(s.squares[i]);
    }
  }
  const double clip = std::max(1.0, root_mean_square(update));
  for (std::size_t i = 0; i < update.size(); ++i) s.weights[i] -= step * update[i] / clip;
  return s;
}

}  // namespace orrery::kernels::reference
