#include "kernels/cpu/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/exponential.h"
#include "kernels/common/lanes.h"
#include "kernels/cpu/gemm.h"

namespace orrery::kernels {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
// The number of queries and of keys in a tile. Measured with benchmarks/kernels_benchmark.cpp on one core of an AMD
// EPYC (Zen 3, 1 MiB of L2), OpenBLAS 0.3.21, while other programs ran, sequence length 1024: forward 28, 29, 28
// GFLOP/s and backward 36, 40, 36 GFLOP/s with tiles of 64, 128, 256.
constexpr std::int64_t kTile = 128;

struct Tile {
  std::int64_t first = 0, count = 0;
};

Tile tile_at(std::int64_t first, std::int64_t end) { return {first, std::min(kTile, end - first)}; }

// Returns the keys of a tile that a query may attend to, as a range of the tile's columns.
KeyRange columns_seen(const CausalMask& mask, std::int64_t query, Tile keys) {
  const KeyRange seen = visible_keys(mask, query, keys.first + keys.count);
  return {std::max<std::int64_t>(seen.first - keys.first, 0), std::max<std::int64_t>(seen.last - keys.first, 0)};
}

// Returns the range of all keys that the queries of a tile may attend to.
KeyRange keys_seen(const CausalMask& mask, Tile queries, std::int64_t keys) {
  return {visible_keys(mask, queries.first, keys).first,
          visible_keys(mask, queries.first + queries.count - 1, keys).last};
}

void scale_row(float factor, float* row, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) row[i] *= factor;
}

// Replaces the scores of a row by exp(score - shift), or by zero for keys to which the mask does not let the query
// attend.
void exponentiate(float shift, KeyRange seen, float* row, std::int64_t n) {
  std::fill(row, row + seen.first, 0.0F);
  for (std::int64_t i = seen.first; i < seen.last; ++i) row[i] = exponential(row[i] - shift);
  std::fill(row + seen.last, row + n, 0.0F);
}

// The forward pass of attention for one sample and head.
struct ForwardHead {
  Matrix<const float> q, k, v;
  Matrix<float> out;
  float* lse;  // log of the sum of exponentials of each row; until run() ends, the row's running maximum
  float scale;
  const CausalMask& mask;
  bool merges = false;
  std::vector<float> scores = std::vector<float>(kTile * kTile);
  std::vector<float> sums = std::vector<float>(kTile);

  // Adds a tile of keys to the running softmax of one query row. If the row's running maximum rises, the sum of the
  // earlier exponentials is first scaled down to the new maximum.
  void absorb_row(Tile queries, Tile keys, std::int64_t r, float* row) {
    const std::int64_t query = queries.first + r;
    const KeyRange seen = columns_seen(mask, query, keys);
    const float before = lse[query];
    const float now = maximum(seen.last - seen.first, row + seen.first, before);
    if (now > before) {
      const float shrink = before == kNone ? 0.0F : exponential(before - now);
      sums[r] *= shrink;
      scale_row(shrink, out.row(query), out.columns);
      lse[query] = now;
    }
    exponentiate(now, seen, row, keys.count);
    sums[r] += sum<float>(keys.count, [row](std::int64_t i) { return row[i]; });
  }

  void absorb(Tile queries, Tile keys) {
    const Matrix<float> s = matrix(scores.data(), queries.count, keys.count);
    multiply({.b = true}, scale, rows_of(q, queries.first, queries.count), rows_of(k, keys.first, keys.count), 0, s);
    for (std::int64_t r = 0; r < queries.count; ++r) absorb_row(queries, keys, r, s.row(r));
    multiply({}, 1, s, rows_of(v, keys.first, keys.count), 1, rows_of(out, queries.first, queries.count));
  }

  // Initialises the running softmax of a query. With `merges`, out and lse hold the attention over earlier keys; lse
  // then serves as the running maximum, relative to which the earlier exponentials sum to 1.
  void begin(std::int64_t query, float& total) const {
    if (merges) {
      total = lse[query] == kNone ? 0.0F : 1.0F;
      return;
    }
    std::fill_n(out.row(query), out.columns, 0.0F);
    lse[query] = kNone;
    total = 0;
  }

  void run(Tile queries) {
    const KeyRange seen = keys_seen(mask, queries, k.rows);
    for (std::int64_t r = 0; r < queries.count; ++r) begin(queries.first + r, sums[r]);
    for (std::int64_t j = seen.first; j < seen.last; j += kTile) absorb(queries, tile_at(j, seen.last));
    for (std::int64_t r = 0; r < queries.count; ++r) {
      if (sums[r] == 0) continue;
      scale_row(1 / sums[r], out.row(queries.first + r), out.columns);
      lse[queries.first + r] += std::log(sums[r]);
    }
  }
};

// The backward pass of attention for one sample and head. Gradients are added to existing values, because the query
// heads of a group share dk and dv.
struct BackwardHead {
  Matrix<const float> q, k, v, out, dout;
  const float* lse;
  Matrix<float> dq, dk, dv;
  float scale;
  const CausalMask& mask;
  std::vector<float> probabilities = std::vector<float>(kTile * kTile);
  std::vector<float> gradients = std::vector<float>(kTile * kTile);
  std::vector<float> products = std::vector<float>(kTile);  // dot product of each row of out with that of dout

  void pair(Tile queries, Tile keys) {
    const auto q_rows = rows_of(q, queries.first, queries.count), do_rows = rows_of(dout, queries.first, queries.count);
    const auto k_rows = rows_of(k, keys.first, keys.count), v_rows = rows_of(v, keys.first, keys.count);
    const Matrix<float> p = matrix(probabilities.data(), queries.count, keys.count);
    const Matrix<float> ds = matrix(gradients.data(), queries.count, keys.count);
    multiply({.b = true}, scale, q_rows, k_rows, 0, p);
    multiply({.b = true}, 1, do_rows, v_rows, 0, ds);
    for (std::int64_t r = 0; r < queries.count; ++r) {
      const std::int64_t query = queries.first + r;
      exponentiate(lse[query], columns_seen(mask, query, keys), p.row(r), keys.count);
      for (std::int64_t c = 0; c < keys.count; ++c) ds.row(r)[c] = p.row(r)[c] * (ds.row(r)[c] - products[r]);
    }
    multiply({.a = true}, 1, p, do_rows, 1, rows_of(dv, keys.first, keys.count));
    multiply({.a = true}, scale, ds, q_rows, 1, rows_of(dk, keys.first, keys.count));
    multiply({}, scale, ds, k_rows, 1, rows_of(dq, queries.first, queries.count));
  }

  void run(Tile queries) {
    for (std::int64_t r = 0; r < queries.count; ++r) {
      const float *a = out.row(queries.first + r), *b = dout.row(queries.first + r);
      products[r] = sum<float>(out.columns, [a, b](std::int64_t i) { return a[i] * b[i]; });
    }
    const KeyRange seen = keys_seen(mask, queries, k.rows);
    for (std::int64_t j = seen.first; j < seen.last; j += kTile) pair(queries, tile_at(j, seen.last));
  }
};

void clear(Matrix<float> m) {
  for (std::int64_t r = 0; r < m.rows; ++r) std::fill_n(m.row(r), m.columns, 0.0F);
}

}  // namespace

void attention_of_head(Matrix<const float> q, Matrix<const float> k, Matrix<const float> v, float scale,
                       const CausalMask& mask, bool merges, Matrix<float> out, float* lse) {
  ForwardHead head = {q, k, v, out, lse, scale, mask, merges};
  for (std::int64_t i = 0; i < q.rows; i += kTile) head.run(tile_at(i, q.rows));
}

void add_attention_gradient_of_head(const HeadSaved& saved, Matrix<const float> dout, float scale,
                                    const CausalMask& mask, Matrix<float> dq, Matrix<float> dk, Matrix<float> dv) {
  BackwardHead head = {saved.q, saved.k, saved.v, saved.out, dout, saved.lse, dq, dk, dv, scale, mask};
  for (std::int64_t i = 0; i < saved.q.rows; i += kTile) head.run(tile_at(i, saved.q.rows));
}

void attention(Heads<const float> q, Heads<const float> k, Heads<const float> v, float scale, const CausalMask& mask,
               Heads<float> out, float* lse) {
  for (std::int64_t s = 0; s < q.batch; ++s) {
    for (std::int64_t h = 0; h < q.heads; ++h) {
      const std::int64_t key_head = h / (q.heads / k.heads);
      attention_of_head(q.of(s, h), k.of(s, key_head), v.of(s, key_head), scale, mask, false, out.of(s, h),
                        lse + (s * q.heads + h) * q.rows);
    }
  }
}

void attention_gradient(const AttentionSaved& saved, Heads<const float> dout, float scale, const CausalMask& mask,
                        Heads<float> dq, Heads<float> dk, Heads<float> dv) {
  const auto& [q, k, v, out, lse] = saved;
  for (std::int64_t s = 0; s < q.batch; ++s) {
    for (std::int64_t h = 0; h < q.heads; ++h) {
      const std::int64_t group = q.heads / k.heads, key_head = h / group;
      if (h % group == 0) {
        clear(dk.of(s, key_head));
        clear(dv.of(s, key_head));
      }
      clear(dq.of(s, h));
      add_attention_gradient_of_head(
          {q.of(s, h), k.of(s, key_head), v.of(s, key_head), out.of(s, h), lse + (s * q.heads + h) * q.rows},
          dout.of(s, h), scale, mask, dq.of(s, h), dk.of(s, key_head), dv.of(s, key_head));
    }
  }
}

}  // namespace orrery::kernels
