#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// Identifies the random numbers of one dropout. A random number depends only on the fields below and on the element's
// index in the complete, unsharded tensor: a rank that holds a part of the tensor draws the same numbers for it as a
// single rank would.
struct DropoutStream {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint16_t layer = 0, op = 0;
};

// The index in the unsharded tensor of element (row, column) of a rank's part: first + (row / rows_per_sample)
// sample_stride + row % rows_per_sample * row_stride + column. Samples are counted over the whole global batch, so the
// index does not depend on data parallelism or on micro-batches.
struct ElementIndex {
  std::uint64_t first = 0;
  std::uint64_t row_stride = 0;
  std::uint64_t sample_stride = 0;
  std::int64_t rows_per_sample = 1;

  constexpr std::uint64_t of_row(std::int64_t row) const {
    return first + static_cast<std::uint64_t>(row / rows_per_sample) * sample_stride +
           static_cast<std::uint64_t>(row % rows_per_sample) * row_stride;
  }
};

struct Dropout {
  // Probability that an element becomes zero; kept elements are multiplied by 1 / (1 - probability).
  double probability = 0;
  DropoutStream stream;
  ElementIndex index;
};

// Writes a contiguous mask (rows, columns): 1 where the element is kept. With probability 0, all elements are kept.
void dropout_mask(const Dropout& dropout, std::int64_t rows, std::int64_t columns, std::uint8_t* mask);

// Computes y = base + dropout(x + bias), where base is the residual stream. base.data and bias may be null; mask may be
// null if the probability is 0. y may be x or base.
void residual(Matrix<const float> base, Matrix<const float> x, const float* bias, double probability,
              const std::uint8_t* mask, Matrix<float> y);

// Computes dx = dy mask / (1 - probability); dx may be dy. The gradient of `base` is dy itself.
void dropout_gradient(Matrix<const float> dy, double probability, const std::uint8_t* mask, Matrix<float> dx);

}  // namespace orrery::kernels
