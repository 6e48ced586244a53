#pragma once

#include <algorithm>

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The causal mask: a query attends to the keys at its own position and before, to at most `window` keys (0: to all).
// The offsets are the positions in the sequence of the first query and of the first key, because a rank may hold only a
// part of the sequence.
struct CausalMask {
  std::int64_t window = 0;
  std::int64_t query_offset = 0, key_offset = 0;
};

// The range [first, last) of the keys to which a query may attend; the range may be empty.
struct KeyRange {
  std::int64_t first = 0, last = 0;
};
constexpr KeyRange visible_keys(const CausalMask& mask, std::int64_t query, std::int64_t keys) {
  const std::int64_t own = mask.query_offset + query - mask.key_offset;
  const std::int64_t last = std::clamp<std::int64_t>(own + 1, 0, keys);
  return {mask.window > 0 ? std::clamp<std::int64_t>(own + 1 - mask.window, 0, last) : 0, last};
}

// Computes flash attention: softmax(scale q k^T) v by tiles with a running maximum and sum, never holding all scores
// (Dao et al. 2022, arXiv:2205.14135, algorithm 1; delayed division of 2307.08691). q and out are (batch, query, heads,
// head_dim); k and v are (batch, key, kv_heads, ...), where heads is a multiple of kv_heads. lse (batch, heads, query)
// is the log of the sum of the exponentials of each row of scores. For a query that may attend to no key, out is zero
// and lse is -infinity.
void attention(Heads<const float> q, Heads<const float> k, Heads<const float> v, float scale, const CausalMask& mask,
               Heads<float> out, float* lse);

// Computes the forward pass for one sample and head; q and out are (query, head_dim). With `merges`, out and lse hold
// on entry the result over other keys, and on return the result over these keys and the keys in k together.
void attention_of_head(Matrix<const float> q, Matrix<const float> k, Matrix<const float> v, float scale,
                       const CausalMask& mask, bool merges, Matrix<float> out, float* lse);

// The tensors that the forward pass of attention saves for the backward pass.
struct AttentionSaved {
  Heads<const float> q, k, v, out;
  const float* lse = nullptr;
};

// Computes the backward pass: recomputes probabilities from lse, tile by tile, and writes all three gradients
// (2307.08691, algorithm 2). The order of summation is fixed: by head, then by tile of queries, then by tile of keys.
void attention_gradient(const AttentionSaved& saved, Heads<const float> dout, float scale, const CausalMask& mask,
                        Heads<float> dq, Heads<float> dk, Heads<float> dv);

// The arrays that the backward pass of attention reads for one sample and head. out and lse are the results over all
// keys, while k and v may hold only some of the keys. Gradients are added to the values already in their buffers.
struct HeadSaved {
  Matrix<const float> q, k, v, out;
  const float* lse = nullptr;
};
void add_attention_gradient_of_head(const HeadSaved& saved, Matrix<const float> dout, float scale,
                                    const CausalMask& mask, Matrix<float> dq, Matrix<float> dk, Matrix<float> dv);

}  // namespace orrery::kernels
