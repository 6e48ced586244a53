#pragma once

#include <cmath>

#include "kernels/cpu/attention.h"
#include "kernels/cuda/fragments.cuh"
#include "kernels/cuda/tensor.h"

// This header has definitions that the forward and the backward pass of flash attention share.
namespace orrery::kernels::cuda {

constexpr float kLn2 = 0.693147181F;

// Returns the number of elements from one row of a tile to the next in shared memory.
constexpr int stride_for(int depth) { return depth <= 64 ? 64 : depth <= 128 ? 128 : 256; }

// A view of a tensor (batch, rows, heads, head_dim) for kernels; the rows (tokens) are `stride` elements apart.
template <class T>
struct HeadsView {
  T* data;
  std::int64_t stride;
  int rows, head_dim;

  __device__ HeadView<T> of(int sample, int head) const {
    return {data + std::int64_t{sample} * rows * stride + std::int64_t{head} * head_dim, stride, rows, head_dim};
  }
};
template <class T>
HeadsView<T> view_as(const Heads& h) {
  return {static_cast<T*>(h.data), h.stride, static_cast<int>(h.rows), static_cast<int>(h.head_dim)};
}
template <class T>
HeadsView<const T> view_as(const ConstHeads& h) {
  return {static_cast<const T*>(h.data), h.stride, static_cast<int>(h.rows), static_cast<int>(h.head_dim)};
}

// The causal mask in 32-bit integers: query number q attends to the keys [p + 1 - window, p], where p = q + shift is
// the key at the query's position.
struct CausalRange {
  int shift, window, keys;

  constexpr int last(int query) const {
    const int own = query + shift;
    return own < 0 ? 0 : own + 1 < keys ? own + 1 : keys;
  }
  constexpr int first(int query) const {
    const int begin = window > 0 ? query + shift + 1 - window : 0;
    return begin < 0 ? 0 : begin < last(query) ? begin : last(query);
  }
  // Returns whether every query of [q, q + queries) attends to all of the keys [k, k + count).
  constexpr bool all(int q, int queries, int k, int count) const {
    return k + count <= last(q) && k >= first(q + queries - 1);
  }
};
inline CausalRange sight_of(const CausalMask& mask, std::int64_t keys) {
  return {static_cast<int>(mask.query_offset - mask.key_offset), static_cast<int>(mask.window), static_cast<int>(keys)};
}

// Sets to `hidden` the scores of keys to which the score's query does not attend. x: a warp's tiles of scores; query,
// key: the numbers of the query and of the key of the first score in x.
template <int row_tiles, int column_tiles>
__device__ inline void hide(float (&x)[row_tiles][column_tiles][4], const CausalRange& sight, int query, int key,
                            float hidden) {
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int q = query + 16 * m + result_row(2 * half), first = sight.first(q), last = sight.last(q);
#pragma unroll
      for (int n = 0; n < column_tiles; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const int k = key + 8 * n + result_column(i);
          if (k < first || k >= last) x[m][n][i] = hidden;
        }
      }
    }
  }
}

}  // namespace orrery::kernels::cuda
