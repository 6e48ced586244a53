#pragma once

#include <cstdint>
#include <type_traits>

namespace orrery::kernels {

// A row-major view of a matrix (rows, columns) in memory that the view does not own. Rows are `stride` elements apart,
// so a range of columns or of rows of a matrix can be a view too. For example, q, k and v are views of column ranges of
// one packed (rows, (heads + 2 kv_heads) * head_dim) buffer. Rows are tokens with the batch outermost: row = sample *
// sequence + position.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  // number of elements from one row to the next, at least `columns`

  T* row(std::int64_t r) const { return data + r * stride; }
  operator Matrix<const T>() const requires(!std::is_const_v<T>) { return {data, rows, columns, stride}; }
};

template <class T>
Matrix<T> matrix(T* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns, columns};
}

template <class T>
Matrix<T> rows_of(Matrix<T> m, std::int64_t first, std::int64_t count) {
  return {m.row(first), count, m.columns, m.stride};
}

template <class T>
Matrix<T> columns_of(Matrix<T> m, std::int64_t first, std::int64_t count) {
  return {m.data + first, m.rows, count, m.stride};
}

// A view of (batch, rows, heads, head_dim): the heads of a token are adjacent, and tokens are `stride` elements apart.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t batch = 0, rows = 0, heads = 0, head_dim = 0;
  std::int64_t stride = 0;

  // Returns the matrix (rows, head_dim) of one sample and head.
  Matrix<T> of(std::int64_t sample, std::int64_t head) const {
    return {data + sample * rows * stride + head * head_dim, rows, head_dim, stride};
  }
  operator Heads<const T>() const requires(!std::is_const_v<T>) { return {data, batch, rows, heads, head_dim, stride}; }
};

// Returns a view of heads [first, first + heads), that is, of the columns [first * head_dim, (first + heads) *
// head_dim) of a matrix (batch * rows, columns). In a packed qkv buffer q begins at head 0, k at head `heads`, v at
// head `heads + kv_heads`.
template <class T>
Heads<T> heads_of(Matrix<T> m, std::int64_t batch, std::int64_t first, std::int64_t heads, std::int64_t head_dim) {
  return {m.data + first * head_dim, batch, m.rows / batch, heads, head_dim, m.stride};
}

}  // namespace orrery::kernels
