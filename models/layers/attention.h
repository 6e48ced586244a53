#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// Inputs of attention: queries and keys, normed and rotated, and the projection whose last columns are the values; or
// the gradients of these. Both are the same slot where nothing stands between the projection and attention.
struct HeadSlots {
  Id queries_keys, qkv;

  std::vector<Id> slots() const { return queries_keys == qkv ? std::vector{qkv} : std::vector{queries_keys, qkv}; }
};

// The work of one attention: so many queries of every sample, and so many heads.
struct AttentionPart {
  std::int64_t query, heads, kv_heads;
};

// Key/value heads of this rank, and columns of a value.
inline std::int64_t kv_heads_of(const LayerTape& layer) { return layer.model.mla ? layer.heads : layer.kv_heads; }
inline std::int64_t value_dim(const LayerTape& layer) {
  return layer.model.mla ? layer.model.mla->v_head_dim : layer.model.head_dim;
}
// All of a rank's attention.
inline AttentionPart whole_part(const LayerTape& layer) {
  return {layer.context.sequence, layer.heads, kv_heads_of(layer)};
}

// Attention from the normed input to the output product. Heads are cut over the tensor group.
Id attention(LayerTape& layer, Id x, bool windowed, bool reduce);
// Slots where attention's backward leaves its gradients. With head norms the gradient of the projection first holds
// only that of the values, and the norms' backward adds queries and keys.
HeadSlots head_gradients(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part);
// The work of fused attention, forward.
FlashAttention flash_work(LayerTape& layer, const AttentionPart& part, bool windowed);
// The values of attention, fused (flash) or with scores and probabilities written out.
Id flash_attention(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed);
Id unfused_attention(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed);

}  // namespace orrery
