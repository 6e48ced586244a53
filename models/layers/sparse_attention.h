#pragma once

#include "models/layers/layer_tape.h"

namespace orrery {

// Buffers of the queries, keys and weights of the index, a small attention that chooses the tokens to attend to; each
// has all rows on every tensor rank. keys_of_sample: number of keys of one sample.
struct Index {
  Id queries, keys, weights;
  std::int64_t keys_of_sample;
};

// Records the choice of tokens by the index and returns the buffer with the numbers of the chosen tokens (rows, top_k).
// Backward trains the index to match attention's probabilities of those tokens (`target`, summed over the heads of all
// tensor ranks).
Id chosen_tokens(LayerTape& layer, const Index& index, Id target);

// Records latent attention to the tokens that an index chooses (DeepSeek-V3.2, arXiv 2512.02556, section 2.1), from the
// normed input to the output of this rank's heads (rows, heads * v_head_dim). All heads share one latent key for each
// token (the paper's MQA mode): the up projections of keys and values are applied to queries and to results instead.
Id sparse_latent_attention(LayerTape& layer, Id x);

// Records the same for a forward pass of text generation, in which the index chooses among the tokens in the cache and
// the new ones, and the copy of the new tokens' keys of attention and of the index into the cache.
Id served_sparse_attention(LayerTape& layer, Id x);

}  // namespace orrery
