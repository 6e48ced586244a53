#include "kernels/cpu/latent.h"

#include <algorithm>

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

}  // namespace orrery::kernels
