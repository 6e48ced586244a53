#pragma once

#include "models/layers/attention.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Attention of a pass of generation: the queries of the new tokens attend to the cached keys and to each other. Where
// latent attention reads a cache, it attends to the compressed vectors themselves: the up projection of keys is applied
// to the queries, that of values to the result, which are the products of the new tokens' own projection (DeepSeek-V2,
// arXiv 2405.04434, section 2.1.2).
FlashAttention with_cache(const Spec& spec, FlashAttention work);

// Records the copy of the new tokens' keys and values into the cache.
void store_keys(LayerTape& layer, const HeadSlots& heads);

// Routed and shared experts of a pass of generation where each rank of the tensor group has all tokens: a rank computes
// the rows of its own experts, or of its part of every expert, and the ranks' results are summed.
Id served_experts(LayerTape& layer, Id x);
// Whether the ranks of the tensor group hold all experts among them, so that no token has to travel.
bool serves_experts(const Spec& spec);

// The end of a pass of generation: the logits of the last token of each sequence, and the choice of the next token.
Block next_token_block(const BlockContext& context, std::vector<Op>& ops);

}  // namespace orrery
