#pragma once

#include <cstdint>

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

// The index of sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1): the score of a query and a key is the
// sum over `heads` heads of a weight of the query times ReLU of the dot product of head_dim numbers. All heads share
// the key.
struct IndexShape {
  std::int64_t heads = 0, head_dim = 0, top_k = 0;
};

// Writes for each query (rows of `queries` and `weights`) the numbers of the at most top_k keys with the highest scores
// among those up to the query's own, in ascending order, and -1 for those that are missing; of equal scores the earlier
// key is chosen. first: the number of the first query's own key.
void choose_tokens(const IndexShape& s, Matrix<const float> queries, Matrix<const float> keys,
                   Matrix<const float> weights, std::int64_t first, std::int32_t* chosen);

}  // namespace orrery::kernels
