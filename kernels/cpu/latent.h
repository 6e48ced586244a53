#pragma once

#include "kernels/common/matrix.h"
#include "kernels/cpu/rotary.h"

namespace orrery::kernels {

// The shape of the heads of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). A query or key head has
// `nope` columns, then `rope` rotated ones; the rotated columns of the keys are the same for all heads.
struct LatentShape {
  std::int64_t heads = 0, nope = 0, rope = 0, value = 0;
};

// Rotates (RoPE) the `rope` columns of every head of q (rows, heads * (nope + rope)) in place; with `back` in the
// opposite direction.
void rotate_queries(const RotaryTable& table, Positions positions, bool back, const LatentShape& s, Matrix<float> q);

// Packs keys and values: from up (rows, heads * (nope + value)) and rope (rows, rope), not yet rotated, to packed
// (rows, heads * (nope + rope) columns of keys, then heads * value columns of values).
void pack_latent(const RotaryTable& table, Positions positions, const LatentShape& s, Matrix<const float> up,
                 Matrix<const float> rope, Matrix<float> packed);

// Computes the gradients of the inputs of pack_latent(): dup has the shape of up; drope (rows, rope) is summed over the
// heads, in their order, and rotated back.
void unpack_latent(const RotaryTable& table, Positions positions, const LatentShape& s, Matrix<const float> dpacked,
                   Matrix<float> dup, Matrix<float> drope);

}  // namespace orrery::kernels
