#pragma once

#include "kernels/common/philox.h"
#include "kernels/cpu/residual.h"

// Reference implementation of kernels/cpu/residual.h, one element at a time, with a Philox call for each, for any
// floating-point type.
namespace orrery::kernels::reference {

inline bool keeps(const Dropout& d, std::int64_t row, std::int64_t column) {
  const std::uint64_t element = d.index.of_row(row) + static_cast<std::uint64_t>(column);
  const Philox words = philox({static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(element / 4 >> 32),
                               d.stream.step, static_cast<std::uint32_t>(d.stream.layer) << 16 | d.stream.op},
                              d.stream.seed);
  return words[element % 4] >= d.probability * 0x1p32;
}

template <class T>
void residual(Matrix<const T> base, Matrix<const T> x, const T* bias, const Dropout& dropout, Matrix<T> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    for (std::int64_t c = 0; c < y.columns; ++c) {
      const T value = x.row(r)[c] + (bias == nullptr ? T{0} : bias[c]);
      const T kept = keeps(dropout, r, c) ? value / static_cast<T>(1 - dropout.probability) : T{0};
      y.row(r)[c] = kept + (base.data == nullptr ? T{0} : base.row(r)[c]);
    }
  }
}

template <class T>
void dropout_gradient(Matrix<const T> dy, const Dropout& dropout, Matrix<T> dx) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    for (std::int64_t c = 0; c < dy.columns; ++c) {
      dx.row(r)[c] = keeps(dropout, r, c) ? dy.row(r)[c] / static_cast<T>(1 - dropout.probability) : T{0};
    }
  }
}

}  // namespace orrery::kernels::reference
