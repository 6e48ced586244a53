#pragma once

#include "kernels/cpu/embedding.h"

// Reference implementation of kernels/cpu/embedding.h as products with one-hot matrices, for any floating-point type.
namespace orrery::kernels::reference {

// Computes y += H table with the one-hot matrix H, whose element (row, chosen(row) - first) is 1 if the table has that
// row.
template <class T, class Chosen>
void choose_rows(Chosen chosen, std::int64_t first, Matrix<const T> table, Matrix<T> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    for (std::int64_t v = 0; v < table.rows; ++v) {
      for (std::int64_t c = 0; c < y.columns; ++c) y.row(r)[c] += table.row(v)[c] * (chosen(r) == first + v ? 1 : 0);
    }
  }
}

// Computes dtable += H^T dy, with the one-hot matrix H of choose_rows().
template <class T, class Chosen>
void choose_rows_gradient(Chosen chosen, std::int64_t first, Matrix<const T> dy, Matrix<T> dtable) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    for (std::int64_t v = 0; v < dtable.rows; ++v) {
      for (std::int64_t c = 0; c < dy.columns; ++c) dtable.row(v)[c] += dy.row(r)[c] * (chosen(r) == first + v ? 1 : 0);
    }
  }
}

}  // namespace orrery::kernels::reference
