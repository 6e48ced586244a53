#pragma once

#include "tests/kernels/random.h"

namespace orrery::kernels {

// A matrix of random numbers, with unused elements after every row, as float for a kernel and as double for its
// reference. error() compares all of it, so that a kernel that writes into the gaps is caught.
struct Operand {
  Operand(std::int64_t rows, std::int64_t columns, std::int64_t gap, std::uint64_t seed)
      : values(random_floats(rows * (columns + gap), seed)),
        doubles(wide(values)),
        view{values.data(), rows, columns, columns + gap},
        reference{doubles.data(), rows, columns, columns + gap} {}
  double error() const { return relative_error(values, doubles); }

  std::vector<float> values;
  std::vector<double> doubles;
  Matrix<float> view;
  Matrix<double> reference;
};

struct MatrixShape {
  std::int64_t rows, columns, gap;
};
constexpr MatrixShape kMatrixShapes[] = {{1, 1, 0}, {3, 7, 2}, {17, 16, 0}, {40, 129, 5}, {5, 768, 1}};

// Matrices of doubles over vectors, for finite differences.
inline Matrix<const double> seen(const std::vector<double>& x, std::int64_t columns) {
  return matrix(x.data(), static_cast<std::int64_t>(x.size()) / columns, columns);
}
inline Matrix<double> seen(std::vector<double>& x, std::int64_t columns) {
  return matrix(x.data(), static_cast<std::int64_t>(x.size()) / columns, columns);
}

}  // namespace orrery::kernels
