#include "models/spec/generation.h"

#include <algorithm>

#include "models/spec/spec.h"

namespace orrery {

Bytes cached_bytes(const Spec& spec, std::int64_t layer) {
  const Model& m = spec.model;
  if (layer_kind(m, layer).mixer != Mixer::attention) return 0;
  const Bytes width = kv_width(*spec.generation);
  if (m.mla) return (m.mla->kv_lora_rank + m.mla->qk_rope_head_dim) * width;
  return 2 * std::max<std::int64_t>(1, m.kv_heads / spec.strategy.tensor) * m.head_dim * width;
}

std::int64_t cached_tokens(const Spec& spec, std::int64_t layer, std::int64_t tokens) {
  const Model& m = spec.model;
  const std::int64_t block = spec.generation->kv_block;
  const std::int64_t kept = has_window(m, layer) ? std::min(tokens, m.sliding_window->window + block) : tokens;
  return (kept + block - 1) / block * block;
}

}  // namespace orrery
