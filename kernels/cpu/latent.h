#pragma once

#include "kernels/common/matrix.h"
#include "kernels/cpu/rotary.h"

namespace orrery::kernels {

// The shape of the heads of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). A query or key head has
// `nope` columns, then `rope` rotated ones; the rotated columns of the keys are the same for all heads.
struct LatentShape {
  std::int64_t heads = 0, nope = 0, rope = 0, value = 0;
};

// Rotates the rope part of every head of q (rows, heads * (nope + rope)) in place; `back` as in rotate().
void rotate_queries(const RotaryTable& table, Positions positions, bool back, const LatentShape& s, Matrix<float> q);

// up (rows, heads * (nope + value)), rope (rows, rope) before rotation -> packed (rows, heads * (nope + rope) keys,
// then heads * value values).
void pack_latent(const RotaryTable& table, Positions positions, const LatentShape& s, Matrix<const float> up,
                 Matrix<const float> rope, Matrix<float> packed);

// The gradient of pack_latent: drope is summed over the heads in their order, then rotated back.
void unpack_latent(const RotaryTable& table, Positions positions, const LatentShape& s, Matrix<const float> dpacked,
                   Matrix<float> dup, Matrix<float> drope);

}  // namespace orrery::kernels
