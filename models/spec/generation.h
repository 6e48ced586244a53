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
  std::int64_t input = 0;      // tokens of a prompt
  std::int64_t output = 1;     // tokens that are generated after each prompt
  std::int64_t chunk = 0;      // most tokens of a prompt that one pass computes (chunked prefill); 0: the whole prompt
  std::int64_t kv_block = 16;  // tokens of a block of the cache; a sequence has whole blocks
  Precision kv_precision = Precision::bf16;  // precision of the cached keys and values
  double memory_fraction = 0.9;              // part of a GPU's memory that weights, cache and working memory may take
  // The pass that a plan computes: the spec's `sequence` says how many tokens it adds to each sequence, `cached` how
  // many the cache already holds.
  std::int64_t cached = 0;

  bool decodes() const { return cached > 0; }
};

// Bytes of one element of the cache.
inline Bytes kv_width(const Generation& g) { return is_eight_bit(g.kv_precision) ? 1 : storage_bytes(g.kv_precision); }
// Bytes that a rank caches of one token in one layer: keys and values of its heads, or with latent attention the
// compressed vector and the rotary part of the key, which every tensor rank holds whole (DeepSeek-V2, arXiv 2405.04434,
// section 2.1); 0 for layers without attention.
Bytes cached_bytes(const Spec& spec, std::int64_t layer);
// Tokens of a sequence for which a layer keeps keys and values, in whole blocks: all of the sequence, or a window.
std::int64_t cached_tokens(const Spec& spec, std::int64_t layer, std::int64_t tokens);
// Bytes that a rank caches of one sequence of so many tokens in a layer.
inline Bytes sequence_cache_bytes(const Spec& spec, std::int64_t layer, std::int64_t tokens) {
  return cached_bytes(spec, layer) * cached_tokens(spec, layer, tokens);
}

}  // namespace orrery
