#include "models/spec/generation.h"

#include <algorithm>

#include "models/spec/spec.h"

namespace orrery {

double Generation::tokens_a_pass() const {
  double tokens = 1, agreed = 1;
  for (std::int64_t i = 0; i < drafts; ++i) tokens += agreed *= acceptance;
  return tokens;
}

bool is_quantised(const Spec& spec) {
  return spec.generation && (spec.strategy.weights.narrow() || is_eight_bit(spec.generation->kv_precision));
}

Spec unquantised(const Spec& spec) {
  Spec wide = spec;
  wide.strategy.weights = {};
  if (wide.generation && is_eight_bit(wide.generation->kv_precision))
    wide.generation->kv_precision = is_eight_bit(spec.strategy.precision) ? Precision::bf16 : spec.strategy.precision;
  return wide;
}

bool keeps_narrow_weights(const Spec& spec) {
  return (spec.model.lora && spec.model.lora->nf4) || (spec.generation && spec.strategy.weights.narrow());
}

Bytes cached_bytes(const Spec& spec, std::int64_t layer) {
  const Model& m = spec.model;
  if (layer_kind(m, layer).mixer != Mixer::attention) return 0;
  const Generation& g = *spec.generation;
  if (m.mla)
    return kv_vector_bytes(g, m.mla->kv_lora_rank) + kv_vector_bytes(g, m.mla->qk_rope_head_dim) + index_key_bytes(m);
  return 2 * std::max<std::int64_t>(1, m.kv_heads / spec.strategy.tensor) * kv_vector_bytes(g, m.head_dim);
}

Bytes index_key_bytes(const Model& m) {
  constexpr Bytes kScaleBytes = 4;
  return m.indexer ? ceil_div(m.indexer->head_dim, kScaleBytes) * kScaleBytes + kScaleBytes : 0;
}

RecurrentBytes recurrent_bytes(const Spec& spec, std::int64_t layer) {
  const Model& m = spec.model;
  if (layer_kind(m, layer).mixer != Mixer::recurrence) return {};
  const Recurrence& r = *m.recurrence;
  const std::int64_t tensor = spec.strategy.tensor;
  return {r.heads / tensor * r.key_dim * r.value_dim * 4,
          ceil_div(r.convolved() / tensor * (r.taps - 1) * storage_bytes(spec.strategy.precision), 4) * 4};
}

std::int64_t cached_tokens(const Spec& spec, std::int64_t layer, std::int64_t tokens) {
  const Model& m = spec.model;
  const std::int64_t block = spec.generation->kv_block;
  const std::int64_t kept = has_window(m, layer) ? std::min(tokens, m.sliding_window->window + block) : tokens;
  return (kept + block - 1) / block * block;
}

}  // namespace orrery
