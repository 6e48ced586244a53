#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/layer_tape.h"

namespace orrery {

// Buffers of attention's inputs (queries and keys after norms and rotation; and the QKV projection, whose last columns
// are the values), or the buffers of the gradients of these inputs. If no op runs between the projection and attention,
// `queries_keys` and `qkv` are the same buffer.
struct HeadSlots {
  Id queries_keys, qkv;
  Id compressed{};  // latent attention: the normalized compressed vectors of keys and values
  Id query{};       // latent attention with compressed queries: these, normalized

  std::vector<Id> slots() const { return queries_keys == qkv ? std::vector{qkv} : std::vector{queries_keys, qkv}; }
};

// The size of one attention op: its numbers of queries per sample, and of query and key/value heads.
struct AttentionPart {
  std::int64_t query, heads, kv_heads;
};

// Returns the number of key/value heads on this rank.
inline std::int64_t kv_heads_of(const LayerTape& layer) { return layer.model.mla ? layer.heads : layer.kv_heads; }
// Returns the number of columns of one head's values.
inline std::int64_t value_dim(const LayerTape& layer) {
  return layer.model.mla ? layer.model.mla->v_head_dim : layer.model.head_dim;
}
// Returns the size of an attention op over all queries and heads of this rank.
inline AttentionPart whole_part(const LayerTape& layer) {
  return {layer.context.sequence, layer.heads, kv_heads_of(layer)};
}

// Records the ops of attention, from the normalized input to the output projection, with heads sharded over the tensor
// group.
Id attention(LayerTape& layer, Id x, bool windowed, bool reduce);
// Returns the buffers into which attention's backward writes the gradients of queries, keys and values. With norms of
// heads (QK norm) attention writes only the values' gradient into the projection's gradient; the norms' backward adds
// the gradients of queries and keys.
HeadSlots head_gradients(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part);
// Returns the op of fused attention's forward pass.
FlashAttention flash_work(LayerTape& layer, const AttentionPart& part, bool windowed);
// These functions record attention and return the buffer of its output: flash_attention() records fused (flash)
// attention, unfused_attention() separate ops that write scores and probabilities to memory.
Id flash_attention(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed);
Id unfused_attention(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed);

}  // namespace orrery
