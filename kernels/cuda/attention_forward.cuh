#pragma once

#include "kernels/cuda/attention_parts.h"
#include "kernels/cuda/attention_tiles.cuh"

namespace orrery::kernels::cuda {

// The tiles of a thread block in the forward pass: 16 * row_tiles queries for each warp, and keys in double-buffered
// tiles.
template <int depth_, int keys_, int warps_, int row_tiles_>
struct ForwardTile {
  static constexpr int depth = depth_, keys = keys_, row_tiles = row_tiles_;
  static constexpr int warp_rows = 16 * row_tiles, queries = warps_ * warp_rows, threads = 32 * warps_;
  static constexpr int stride = stride_for(depth);
  static constexpr int q_bytes = 2 * queries * stride, k_bytes = 2 * keys * stride;
  // Bytes of shared memory: one tile of queries, two of keys and two of values.
  static constexpr int shared_bytes = q_bytes + 4 * k_bytes;
};

template <class T>
struct ForwardCall {
  HeadsView<const T> q, k, v;
  HeadsView<T> out;
  float* lse;
  int heads, group;  // number of query heads, and of query heads that share a key head
  float scale;
  CausalRange sight;
};

// The running maximum and sum of the softmax, for the rows of scores that a thread holds: two rows in every row tile.
// The sum covers only the columns that the thread holds.
template <int row_tiles>
struct RunningRows {
  float largest[row_tiles][2], sum[row_tiles][2];

  __device__ RunningRows() {
#pragma unroll
    for (int r = 0; r < 2 * row_tiles; ++r) {
      largest[r / 2][r % 2] = -INFINITY;
      sum[r / 2][r % 2] = 0;
    }
  }

  // Adds a tile of scores to the running softmax. Each score becomes exp2(unit (score - largest)), where unit is the
  // scale of the scores times log2(e); if a row's maximum has risen, the row's earlier sums and `out` are scaled down
  // to the new maximum.
  template <int score_tiles, int out_tiles>
  __device__ void absorb(float unit, float (&scores)[row_tiles][score_tiles][4],
                         float (&out)[row_tiles][out_tiles][4]) {
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = 2 * half;
        const float before = largest[m][half];
        float now = before;
#pragma unroll
        for (int n = 0; n < score_tiles; ++n) now = fmaxf(now, fmaxf(scores[m][n][i], scores[m][n][i + 1]));
        now = fmaxf(now, shuffle_xor(now, 1));
        now = fmaxf(now, shuffle_xor(now, 2));
        // `now`, the row's maximum, is -INFINITY if the mask has hidden all keys so far; subtracting it would give NaN.
        const float shift = now == -INFINITY ? 0 : now * unit;
        const float shrink = exp2_fast(before * unit - shift);
        float total = 0;
#pragma unroll
        for (int n = 0; n < score_tiles; ++n) {
#pragma unroll
          for (int j = i; j < i + 2; ++j) {
            scores[m][n][j] = exp2_fast(scores[m][n][j] * unit - shift);
            total += scores[m][n][j];
          }
        }
        largest[m][half] = now;
        sum[m][half] = sum[m][half] * shrink + total;
#pragma unroll
        for (int n = 0; n < out_tiles; ++n) {
          out[m][n][i] *= shrink;
          out[m][n][i + 1] *= shrink;
        }
      }
    }
  }

  // Divides `out` by the sums of exponentials, and calls put(row within the warp, log of the row's sum of exponentials)
  // for every row.
  template <int out_tiles, class Put>
  __device__ void finish(float scale, float (&out)[row_tiles][out_tiles][4], const Put& put) {
#pragma unroll
    for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float total = sum[m][half];
        total += shuffle_xor(total, 1);
        total += shuffle_xor(total, 2);
        const float share = total == 0 ? 0 : 1 / total;
#pragma unroll
        for (int n = 0; n < out_tiles; ++n) {
          out[m][n][2 * half] *= share;
          out[m][n][2 * half + 1] *= share;
        }
        put(16 * m + result_row(2 * half), total == 0 ? -INFINITY : largest[m][half] * scale + logf(total));
      }
    }
  }
};

// The forward pass for one tile of queries of one head, by one thread block (Dao 2023, arXiv:2307.08691, algorithm 1).
// blockIdx.y counts the tiles from the last, whose queries attend to the most keys.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads) forward_block(ForwardCall<T> call) {
  constexpr int kStride = Tile::stride, kDepth = Tile::depth, kKeys = Tile::keys;
  const int thread = static_cast<int>(threadIdx.x), warp_row = thread / 32 * Tile::warp_rows;
  const int sample = static_cast<int>(blockIdx.x) / call.heads, head = static_cast<int>(blockIdx.x) % call.heads;
  const int query = static_cast<int>(gridDim.y - 1 - blockIdx.y) * Tile::queries;
  const auto q = call.q.of(sample, head);
  const auto k = call.k.of(sample, head / call.group), v = call.v.of(sample, head / call.group);
  const int last_query = (query + Tile::queries < q.rows ? query + Tile::queries : q.rows) - 1;
  const int begin = call.sight.first(query) / kKeys, end = (call.sight.last(last_query) + kKeys - 1) / kKeys;

  const std::uint32_t q_tile = shared_address(shared_memory()), kv_tiles = q_tile + Tile::q_bytes;
  const auto load_keys = [&](int tile) {
    const std::uint32_t to = kv_tiles + (tile % 2) * (2 * Tile::k_bytes);
    load_tile<kStride, kKeys, kDepth, Tile::threads>(to, k, tile * kKeys, thread);
    load_tile<kStride, kKeys, kDepth, Tile::threads>(to + Tile::k_bytes, v, tile * kKeys, thread);
  };
  load_tile<kStride, Tile::queries, kDepth, Tile::threads>(q_tile, q, query, thread);
  if (begin < end) load_keys(begin);
  commit_copies();

  float out[Tile::row_tiles][kDepth / 8][4] = {};
  RunningRows<Tile::row_tiles> rows;
  const float unit = call.scale * kLog2E;
  for (int tile = begin; tile < end; ++tile) {
    wait_copies<0>();
    // after this barrier all asynchronous copies to shared memory have arrived, and no thread reads the previous tiles
    // of keys and values any more
    sync_block();
    if (tile + 1 < end) load_keys(tile + 1);
    commit_copies();
    const std::uint32_t k_tile = kv_tiles + (tile % 2) * (2 * Tile::k_bytes), v_tile = k_tile + Tile::k_bytes;
    float scores[Tile::row_tiles][kKeys / 8][4] = {};
    multiply_tiles<T, kDepth / 16>(scores, a_of_mk<kStride>(q_tile, warp_row, 0), b_of_nk<kStride>(k_tile, 0, 0));
    if (!call.sight.all(query, Tile::queries, tile * kKeys, kKeys)) {
      hide(scores, call.sight, query + warp_row, tile * kKeys, -INFINITY);
    }
    rows.absorb(unit, scores, out);
    const auto probabilities = [&](std::uint32_t(&f)[4], int m, int step) {
      f[0] = pack<T>(scores[m][2 * step][0], scores[m][2 * step][1]);
      f[1] = pack<T>(scores[m][2 * step][2], scores[m][2 * step][3]);
      f[2] = pack<T>(scores[m][2 * step + 1][0], scores[m][2 * step + 1][1]);
      f[3] = pack<T>(scores[m][2 * step + 1][2], scores[m][2 * step + 1][3]);
    };
    multiply_tiles<T, kKeys / 16>(out, probabilities, b_of_kn<kStride>(v_tile, 0, 0));
  }
  if (begin >= end) {
    wait_copies<0>();  // waits until the queries are copied to shared memory
    sync_block();
  }

  float* lse = call.lse + (std::int64_t{sample} * call.heads + head) * q.rows;
  rows.finish(call.scale, out, [&](int row, float value) {
    const int at = query + warp_row + row;
    if (thread % 4 == 0 && at < q.rows) lse[at] = value;
  });
  // Each warp stores its results through its own rows of the query tile in shared memory, which no other warp reads.
  const std::uint32_t own = q_tile + static_cast<std::uint32_t>(warp_row) * (2 * kStride);
  sync_warp();
  store_results<T, kStride>(own, 0, 0, out);
  sync_warp();
  save_tile<kStride, Tile::warp_rows, kDepth, 32>(own, call.out.of(sample, head), query + warp_row, thread % 32);
}

template <class T, class Tile>
void launch_forward(const ForwardArguments& a, cudaStream_t stream) {
  const ForwardCall<T> call = {view_as<T>(a.q),
                               view_as<T>(a.k),
                               view_as<T>(a.v),
                               view_as<T>(a.out),
                               a.lse,
                               static_cast<int>(a.q.heads),
                               static_cast<int>(a.q.heads / a.k.heads),
                               a.scale,
                               sight_of(a.mask, a.k.rows)};
  const dim3 grid(static_cast<unsigned>(a.q.batch * a.q.heads),
                  static_cast<unsigned>((a.q.rows + Tile::queries - 1) / Tile::queries));
  launch("attention", forward_block<T, Tile>, grid, Tile::threads, Tile::shared_bytes, stream, call);
}

}  // namespace orrery::kernels::cuda
