#pragma once

#include "models/layers/attention.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Returns the attention op of one forward pass of text generation, in which the queries of the new tokens attend to the
// cached keys and to each other. Latent attention (MLA) that reads a cache, or only the tokens that an index chose,
// attends to the compressed vectors themselves: the up projection of keys is applied to the queries, and that of values
// to the result. The plan counts this as the up projection of the new tokens' own keys and values, which has as many
// FLOPs (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
FlashAttention with_cache(const Spec& spec, FlashAttention work);

// Records the copy of the new tokens' keys and values into the cache, with latent attention of their compressed vectors
// and rotated key parts. It comes after attention, because a window's cache has no room for the tokens before a long
// pass and the pass itself.
void store_keys(LayerTape& layer, const HeadSlots& heads);
// Adds to the operands of attention the cache and, for latent attention, the up projection of keys and values, which
// attention applies to queries and results instead of to the cached vectors.
void read_cache(LayerTape& layer, BlockBuilder::Uses& attention);

// Records the ops of routed and shared experts for a forward pass of text generation in which each rank of the tensor
// group has all tokens: a rank computes the rows of its own experts, or of its part of every expert, and the ranks'
// results are summed.
Id served_experts(LayerTape& layer, Id x);
// Returns whether the ranks of the tensor group together hold all experts, so that no token has to be sent to another
// rank.
bool serves_experts(const Spec& spec);

// Builds the last block of a forward pass of text generation: the logits of the last token of each sequence, and the
// choice of the next token.
Block next_token_block(const BlockContext& context, std::vector<Op>& ops);

}  // namespace orrery
