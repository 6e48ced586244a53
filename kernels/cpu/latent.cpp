#include "kernels/cpu/latent.h"

#include <algorithm>
#include <vector>

namespace orrery::kernels {

void rotate_queries(const RotaryTable& table, Positions positions, bool back, const LatentShape& s, Matrix<float> q) {
  for (std::int64_t h = 0; h < s.heads; ++h)
    rotate(table, positions, back, columns_of(q, h * (s.nope + s.rope) + s.nope, s.rope));
}

void pack_latent(const RotaryTable& table, Positions positions, const LatentShape& s, Matrix<const float> up,
                 Matrix<const float> rope, Matrix<float> packed) {
  const std::int64_t key = s.nope + s.rope, values = s.heads * key;
  for (std::int64_t r = 0; r < packed.rows; ++r) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const float* from = up.row(r) + h * (s.nope + s.value);
      std::copy_n(from, s.nope, packed.row(r) + h * key);
      std::copy_n(rope.row(r), s.rope, packed.row(r) + h * key + s.nope);
      std::copy_n(from + s.nope, s.value, packed.row(r) + values + h * s.value);
    }
  }
  rotate_queries(table, positions, false, s, columns_of(packed, 0, values));
}

void unpack_latent(const RotaryTable& table, Positions positions, const LatentShape& s, Matrix<const float> dpacked,
                   Matrix<float> dup, Matrix<float> drope) {
  const std::int64_t key = s.nope + s.rope, values = s.heads * key;
  for (std::int64_t r = 0; r < dpacked.rows; ++r) {
    std::fill_n(drope.row(r), s.rope, 0.0F);
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const float* from = dpacked.row(r) + h * key;
      float* to = dup.row(r) + h * (s.nope + s.value);
      std::copy_n(from, s.nope, to);
      for (std::int64_t i = 0; i < s.rope; ++i) drope.row(r)[i] += from[s.nope + i];
      std::copy_n(dpacked.row(r) + values + h * s.value, s.value, to + s.nope);
    }
  }
  rotate(table, positions, true, drope);
}

static double index_score(const IndexShape& s, const float* query, const float* key, const float* weights) {
  double sum = 0;
  for (std::int64_t h = 0; h < s.heads; ++h) {
    double product = 0;
    for (std::int64_t i = 0; i < s.head_dim; ++i) product += static_cast<double>(query[h * s.head_dim + i]) * key[i];
    sum += weights[h] * std::max(0.0, product);
  }
  return sum;
}

void choose_tokens(const IndexShape& s, Matrix<const float> queries, Matrix<const float> keys,
                   Matrix<const float> weights, std::int64_t first, std::int32_t* chosen) {
  for (std::int64_t q = 0; q < queries.rows; ++q) {
    std::vector<double> scores(static_cast<std::size_t>(std::min(keys.rows, first + q + 1)));
    std::vector<std::int32_t> best(scores.size());
    for (std::size_t k = 0; k < scores.size(); ++k) {
      scores[k] = index_score(s, queries.row(q), keys.row(static_cast<std::int64_t>(k)), weights.row(q));
      best[k] = static_cast<std::int32_t>(k);
    }
    const auto better = [&](std::int32_t a, std::int32_t b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    };
    const std::int64_t count = std::min(s.top_k, static_cast<std::int64_t>(best.size()));
    std::partial_sort(best.begin(), best.begin() + count, best.end(), better);
    std::sort(best.begin(), best.begin() + count);
    std::int32_t* row = chosen + q * s.top_k;
    std::copy_n(best.begin(), count, row);
    std::fill(row + count, row + s.top_k, -1);
  }
}

}  // namespace orrery::kernels
