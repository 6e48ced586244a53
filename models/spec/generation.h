#pragma once

#include <cstdint>

#include "models/base/precision.h"
#include "models/base/units.h"

namespace orrery {

struct Model;
struct Spec;

// The generation of text by a trained model (workload: generate), in place of a training step: prompts of `input`
// tokens are computed in forward (prefill), then each pass adds one token to every sequence (decode). Keys and values
// of all tokens so far stay in a cache (KV cache).
struct Generation {
  std::int64_t batch = 1;      // sequences that are generated together, over all data ranks
  std::int64_t input = 0;      // number of tokens of each prompt
  std::int64_t output = 1;     // number of tokens that are generated after each prompt
  std::int64_t chunk = 0;      // most tokens of a prompt that one pass computes (chunked prefill); 0: the whole prompt
  std::int64_t kv_block = 16;  // number of tokens in a block of the KV cache; a sequence occupies whole blocks
  Precision kv_precision = Precision::bf16;  // precision of the cached keys and values
  double memory_fraction = 0.9;              // fraction of a GPU's memory for weights, KV cache and workspace
  // The pass that a plan computes adds Spec::sequence tokens to each sequence. cached: number of tokens of each
  // sequence that the KV cache holds before the pass; 0 in a prompt's first pass.
  std::int64_t cached = 0;

  bool decodes() const { return cached > 0; }
};

// Returns the bytes of one element of the KV cache.
inline Bytes kv_width(const Generation& g) { return is_eight_bit(g.kv_precision) ? 1 : storage_bytes(g.kv_precision); }
// Returns the bytes that a rank keeps in the KV cache for one token in one layer: keys and values of its heads, or with
// latent attention the compressed vector and the rotary part of the key, which every tensor rank holds whole
// (DeepSeek-V2, arXiv 2405.04434, section 2.1); 0 for layers without attention.
Bytes cached_bytes(const Spec& spec, std::int64_t layer);
// Returns the number of tokens of a sequence whose keys and values a layer keeps in the KV cache, rounded up to whole
// cache blocks: all tokens, or at most the sliding window and one block.
std::int64_t cached_tokens(const Spec& spec, std::int64_t layer, std::int64_t tokens);
// Returns the bytes that a rank keeps in the KV cache for one sequence of `tokens` tokens in one layer.
inline Bytes sequence_cache_bytes(const Spec& spec, std::int64_t layer, std::int64_t tokens) {
  return cached_bytes(spec, layer) * cached_tokens(spec, layer, tokens);
}

}  // namespace orrery
