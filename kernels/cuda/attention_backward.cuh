#pragma once

#include "kernels/cuda/attention_parts.h"
#include "kernels/cuda/attention_tiles.cuh"

namespace orrery::kernels::cuda {

// The tiles of a thread block in the backward pass: one tile of keys, whose gradients stay in registers, and all
// queries that attend to these keys, in double-buffered tiles. Eight warps divide the scores (queries, keys) into 2 x 4
// parts, the keys' gradients (keys, depth) into 4 x 2 parts, and the queries' gradients (queries, depth) into dq_warps
// x 8 / dq_warps parts. depth: head_dim, rounded up.
template <int depth_, int dq_warps_>
struct BackwardTile {
  static constexpr int depth = depth_, dq_warps = dq_warps_;
  static constexpr int queries = backward_extent(depth).queries, keys = backward_extent(depth).keys;
  static constexpr int threads = 256, stride = stride_for(depth), p_stride = keys;
  static constexpr int score_rows = queries / 2, score_columns = keys / 4;
  static constexpr int key_rows = keys / 4, key_columns = depth / 2;
  static constexpr int dq_rows = queries / dq_warps, dq_columns = depth * dq_warps / 8;
  static constexpr int dq_row_tiles = dq_rows / 16, dq_column_tiles = dq_columns / 8;
  static constexpr int k_bytes = 2 * keys * stride, q_bytes = 2 * queries * stride, p_bytes = 2 * queries * p_stride;
  // Bytes of shared memory: k and v, two tiles each of q and dout, and probabilities and their gradients.
  static constexpr int shared_bytes = 2 * k_bytes + 4 * q_bytes + 2 * p_bytes;
};

template <class T>
struct BackwardCall {
  HeadsView<const T> q, k, v, dout;
  HeadsView<T> dk, dv;
  // Statistics (batch, heads, query): the log to base 2 of the sum of exponentials of each row of scores, and the dot
  // product of each row of dout and out.
  const float *lse2, *products;
  float *dq_sums, *partial_keys;
  // Number of all query heads; of query heads that share a key head; and of query heads that run in one thread block.
  int heads, group, heads_each;
  float scale;
  CausalRange sight;
};

// The tiles of queries that attend to the keys of a thread block: `tiles` tiles from `first_tile` on, for each of the
// block's heads.
struct QueryTiles {
  int first_tile, tiles;
};
template <int queries, int keys>
__device__ inline QueryTiles tiles_that_see(const CausalRange& sight, int key, int rows) {
  const int last_key = (key + keys < sight.keys ? key + keys : sight.keys) - 1;
  const int begin = key - sight.shift < 0 ? 0 : key - sight.shift;
  // `beyond` is the first query whose attention window begins after the last key of this tile.
  const int beyond = last_key + sight.window - sight.shift;
  const int end = sight.window > 0 && beyond < rows ? beyond : rows;
  if (begin >= end) return {0, 0};
  return {begin / queries, (end + queries - 1) / queries - begin / queries};
}

// Adds a warp's part of the queries' gradient dq to the sums of a tile in device memory, in which the four results of a
// thread are adjacent.
template <int row_tiles, int column_tiles>
__device__ inline void add_fragments(float* to, const float (&x)[row_tiles][column_tiles][4]) {
#pragma unroll
  for (int m = 0; m < row_tiles; ++m) {
#pragma unroll
    for (int n = 0; n < column_tiles; ++n) {
      float* at = to + ((m * column_tiles + n) * 32 + static_cast<int>(threadIdx.x % 32)) * 4;
      add_atomically(at, make_float4(x[m][n][0], x[m][n][1], x[m][n][2], x[m][n][3]));
    }
  }
}

// One thread block's share of the backward pass of attention (2307.08691, algorithm 2).
template <class T, class Tile>
struct BackwardBlock {
  static constexpr int kStride = Tile::stride, kSteps = Tile::depth / 16;
  using Scores = float[Tile::score_rows / 16][Tile::score_columns / 8][4];
  using KeyGradient = float[Tile::key_rows / 16][Tile::key_columns / 8][4];

  const BackwardCall<T>& call;
  int thread, warp, sample, key_head, first_head, key;
  std::uint32_t k_tile, v_tile, q_tiles, p_tile, ds_tile;
  QueryTiles tiles;

  __device__ explicit BackwardBlock(const BackwardCall<T>& c)
      : call(c), thread(static_cast<int>(threadIdx.x)), warp(static_cast<int>(threadIdx.x) / 32) {
    const int key_heads = call.heads / call.group, part = static_cast<int>(blockIdx.z);
    sample = static_cast<int>(blockIdx.x) / key_heads;
    key_head = static_cast<int>(blockIdx.x) % key_heads;
    first_head = key_head * call.group + part * call.heads_each;
    key = static_cast<int>(blockIdx.y) * Tile::keys;
    k_tile = shared_address(shared_memory());
    v_tile = k_tile + Tile::k_bytes;
    q_tiles = v_tile + Tile::k_bytes;
    p_tile = q_tiles + 4 * Tile::q_bytes;
    ds_tile = p_tile + Tile::p_bytes;
    tiles = tiles_that_see<Tile::queries, Tile::keys>(call.sight, key, call.q.rows);
  }

  __device__ int rounds() const { return call.heads_each * tiles.tiles; }
  __device__ int head_of(int round) const { return first_head + round / tiles.tiles; }
  __device__ int tile_of(int round) const { return tiles.first_tile + round % tiles.tiles; }
  __device__ std::uint32_t q_tile_of(int round) const { return q_tiles + (round % 2) * (2 * Tile::q_bytes); }

  __device__ void load_keys() const {
    load_tile<kStride, Tile::keys, Tile::depth, Tile::threads>(k_tile, call.k.of(sample, key_head), key, thread);
    load_tile<kStride, Tile::keys, Tile::depth, Tile::threads>(v_tile, call.v.of(sample, key_head), key, thread);
  }
  __device__ void load_queries(int round) const {
    const std::uint32_t to = q_tile_of(round);
    const int head = head_of(round), first = tile_of(round) * Tile::queries;
    load_tile<kStride, Tile::queries, Tile::depth, Tile::threads>(to, call.q.of(sample, head), first, thread);
    load_tile<kStride, Tile::queries, Tile::depth, Tile::threads>(to + Tile::q_bytes, call.dout.of(sample, head), first,
                                                                  thread);
  }

  // Computes probabilities and the gradients of scores (not yet scaled), in registers, and stores them, rounded, as
  // tiles in shared memory.
  __device__ void differentiate(int round) const {
    constexpr int kRowTiles = Tile::score_rows / 16;
    const std::uint32_t q_tile = q_tile_of(round), dout_tile = q_tile + Tile::q_bytes;
    const int row = warp % 2 * Tile::score_rows, column = warp / 2 * Tile::score_columns;
    const int query = tile_of(round) * Tile::queries;
    const std::int64_t statistics = (std::int64_t{sample} * call.heads + head_of(round)) * call.q.rows;
    float lse2[kRowTiles][2], products[kRowTiles][2];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = query + row + 16 * m + result_row(2 * half);
        // the statistics are zero for rows after the last query, as the tiles of q and dout are
        lse2[m][half] = at < call.q.rows ? call.lse2[statistics + at] : 0;
        products[m][half] = at < call.q.rows ? call.products[statistics + at] : 0;
      }
    }
    Scores p = {};
    multiply_tiles<T, kSteps>(p, a_of_mk<kStride>(q_tile, row, 0), b_of_nk<kStride>(k_tile, column, 0));
    if (!call.sight.all(query, Tile::queries, key, Tile::keys)) {
      hide(p, call.sight, query + row, key + column, -INFINITY);
    }
    const float unit = call.scale * kLog2E;
    each(p, [&](float& x, int m, int half) { x = x == -INFINITY ? 0 : exp2_fast(x * unit - lse2[m][half]); });
    store_results<T, Tile::p_stride>(p_tile, row, column, p);
    Scores ds = {};
    multiply_tiles<T, kSteps>(ds, a_of_mk<kStride>(dout_tile, row, 0), b_of_nk<kStride>(v_tile, column, 0));
    each(ds, [&](float& x, int m, int half) { x -= products[m][half]; });
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(Scores) / sizeof(float)); ++i) {
      constexpr int kColumns = Tile::score_columns / 8;
      ds[i / 4 / kColumns][i / 4 % kColumns][i % 4] *= p[i / 4 / kColumns][i / 4 % kColumns][i % 4];
    }
    store_results<T, Tile::p_stride>(ds_tile, row, column, ds);
  }

  template <class F>
  __device__ static void each(Scores& x, const F& f) {
#pragma unroll
    for (int m = 0; m < Tile::score_rows / 16; ++m) {
#pragma unroll
      for (int n = 0; n < Tile::score_columns / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) f(x[m][n][i], m, i / 2);
      }
    }
  }

  // Adds the contributions of one tile of queries to the gradients of keys and values. All warps have stored the
  // probabilities and the gradients of scores in shared memory before.
  __device__ void gather(int round, KeyGradient& dk, KeyGradient& dv) const {
    const std::uint32_t q_tile = q_tile_of(round), dout_tile = q_tile + Tile::q_bytes;
    const int row = warp % 4 * Tile::key_rows, column = warp / 4 * Tile::key_columns;
    constexpr int kQuerySteps = Tile::queries / 16;
    multiply_tiles<T, kQuerySteps>(dv, a_of_km<Tile::p_stride>(p_tile, 0, row), b_of_kn<kStride>(dout_tile, 0, column));
    send_query_gradient(round);
    multiply_tiles<T, kQuerySteps>(dk, a_of_km<Tile::p_stride>(ds_tile, 0, row), b_of_kn<kStride>(q_tile, 0, column));
  }
  __device__ void send_query_gradient(int round) const {
    const int row = warp % Tile::dq_warps * Tile::dq_rows, column = warp / Tile::dq_warps * Tile::dq_columns;
    float dq[Tile::dq_row_tiles][Tile::dq_column_tiles][4] = {};
    multiply_tiles<T, Tile::keys / 16>(dq, a_of_mk<Tile::p_stride>(ds_tile, row, 0),
                                       b_of_kn<kStride>(k_tile, 0, column));
    const int all_tiles = (call.q.rows + Tile::queries - 1) / Tile::queries;
    const std::int64_t tile = (std::int64_t{sample} * call.heads + head_of(round)) * all_tiles + tile_of(round);
    add_fragments(call.dq_sums + tile * (Tile::queries * Tile::depth) + warp * (Tile::dq_rows * Tile::dq_columns), dq);
  }

  __device__ void run() const {
    KeyGradient dk = {}, dv = {};
    load_keys();
    if (rounds() > 0) load_queries(0);
    commit_copies();
    for (int round = 0; round < rounds(); ++round) {
      wait_copies<0>();
      // after this barrier all asynchronous copies to shared memory have arrived, and no thread reads the tiles of the
      // previous round any more
      sync_block();
      if (round + 1 < rounds()) load_queries(round + 1);
      commit_copies();
      differentiate(round);
      sync_block();
      gather(round, dk, dv);
    }
    wait_copies<0>();
    sync_block();
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(KeyGradient) / sizeof(float)); ++i) {
      constexpr int kColumns = Tile::key_columns / 8;
      dk[i / 4 / kColumns][i / 4 % kColumns][i % 4] *= call.scale;
    }
    if (call.partial_keys != nullptr) return save_partial(dk, dv);
    save(dk, dv);
  }

  // Writes the gradients of keys and values to device memory. They pass through the shared memory of the k and v tiles,
  // which no thread reads any more.
  __device__ void save(const KeyGradient& dk, const KeyGradient& dv) const {
    const int row = warp % 4 * Tile::key_rows, column = warp / 4 * Tile::key_columns;
    store_results<T, kStride>(k_tile, row, column, dk);
    store_results<T, kStride>(v_tile, row, column, dv);
    sync_block();
    save_tile<kStride, Tile::keys, Tile::depth, Tile::threads>(k_tile, call.dk.of(sample, key_head), key, thread);
    save_tile<kStride, Tile::keys, Tile::depth, Tile::threads>(v_tile, call.dv.of(sample, key_head), key, thread);
  }

  // Writes the gradients from this block's share of the query heads (its number is blockIdx.z) to device memory: all of
  // dk, then all of dv, each of shape (share, sample, key, key head, depth).
  __device__ void save_partial(const KeyGradient& dk, const KeyGradient& dv) const {
    const int row = key + warp % 4 * Tile::key_rows, column = warp / 4 * Tile::key_columns, head_dim = call.k.head_dim;
    const std::int64_t width = std::int64_t{call.heads / call.group} * head_dim;
    const std::int64_t samples = gridDim.x / (call.heads / call.group);
    const std::int64_t part = blockIdx.z * samples + sample, whole = gridDim.z * samples * call.k.rows * width;
    float* to = call.partial_keys + part * call.k.rows * width + std::int64_t{key_head} * head_dim;
#pragma unroll
    for (int m = 0; m < Tile::key_rows / 16; ++m) {
#pragma unroll
      for (int n = 0; n < Tile::key_columns / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int r = row + 16 * m + result_row(i), c = column + 8 * n + result_column(i);
          if (r >= call.k.rows || c >= head_dim) continue;
          to[r * width + c] = dk[m][n][i];
          to[whole + r * width + c] = dv[m][n][i];
        }
      }
    }
  }
};

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, 1) backward_block(BackwardCall<T> call) {
  BackwardBlock<T, Tile>(call).run();
}

// Computes dq = scale * sums. `sums` has the order in which threads of the backward pass added to it, where the results
// of one thread are adjacent. So every thread here takes eight columns of two rows, which are the results of four
// threads there.
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads)
    finish_queries(const float* sums, int heads, float scale, HeadsView<T> dq) {
  constexpr int kFragments = Tile::queries * Tile::depth / 128;
  const int sample = static_cast<int>(blockIdx.x) / heads, head = static_cast<int>(blockIdx.x) % heads;
  const HeadView<T> to = dq.of(sample, head);
  const float* tile = sums + (std::int64_t{blockIdx.x} * gridDim.y + blockIdx.y) * (Tile::queries * Tile::depth);
  for (int at = static_cast<int>(threadIdx.x); at < 8 * kFragments; at += Tile::threads) {
    const int fragment = at / 8, g = at % 8;
    const int n = fragment % Tile::dq_column_tiles, m = fragment / Tile::dq_column_tiles % Tile::dq_row_tiles;
    const int warp = fragment / (Tile::dq_column_tiles * Tile::dq_row_tiles);
    const int row = static_cast<int>(blockIdx.y) * Tile::queries + warp % Tile::dq_warps * Tile::dq_rows + 16 * m + g;
    const int column = warp / Tile::dq_warps * Tile::dq_columns + 8 * n;
    if (column >= to.head_dim) continue;
    const auto* from = reinterpret_cast<const float4*>(tile + fragment * 128 + g * 16);
    std::uint32_t words[2][4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const float4 x = from[t];
      words[0][t] = pack<T>(scale * x.x, scale * x.y);
      words[1][t] = pack<T>(scale * x.z, scale * x.w);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + 8 * half;
      if (r >= to.rows) continue;
      *reinterpret_cast<uint4*>(to.data + r * to.stride + column) =
          uint4{words[half][0], words[half][1], words[half][2], words[half][3]};
    }
  }
}

template <class T, class Tile>
void launch_backward(const BackwardArguments& a, cudaStream_t stream) {
  const AttentionSaved& s = a.saved;
  const int heads = static_cast<int>(s.q.heads), group = static_cast<int>(s.q.heads / s.k.heads);
  const bool apart = a.partial_keys != nullptr;
  const std::int64_t query_tiles = (s.q.rows + Tile::queries - 1) / Tile::queries, rows = s.q.batch * s.q.heads;
  const BackwardCall<T> call = {view_as<T>(s.q),
                                view_as<T>(s.k),
                                view_as<T>(s.v),
                                view_as<T>(a.dout),
                                view_as<T>(a.dk),
                                view_as<T>(a.dv),
                                a.statistics,
                                a.statistics + rows * s.q.rows,
                                a.dq_sums,
                                a.partial_keys,
                                heads,
                                group,
                                apart ? 1 : group,
                                a.scale,
                                sight_of(a.mask, s.k.rows)};
  const dim3 grid(static_cast<unsigned>(s.k.batch * s.k.heads),
                  static_cast<unsigned>((s.k.rows + Tile::keys - 1) / Tile::keys),
                  static_cast<unsigned>(apart ? group : 1));
  launch("attention_gradient", backward_block<T, Tile>, grid, Tile::threads, Tile::shared_bytes, stream, call);
  launch("attention_gradient", finish_queries<T, Tile>,
         dim3(static_cast<unsigned>(rows), static_cast<unsigned>(query_tiles)), Tile::threads, 0, stream, a.dq_sums,
         heads, a.scale, view_as<T>(a.dq));
}

}  // namespace orrery::kernels::cuda
