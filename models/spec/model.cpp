#include "models/spec/model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/base/units.h"

namespace orrery {
namespace {

// The allowed range of a size of the model, far above that of any known model, but low enough that products of a few
// sizes stay below 2^63.
struct Bound {
  const char* key;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

std::string out_of_bounds(std::initializer_list<Bound> bounds) {
  for (const Bound& b : bounds) {
    if (b.value < b.least || b.value > b.most) {
      return fmt::format("{}: {} is not between {} and {}", b.key, b.value, b.least, b.most);
    }
  }
  return "";
}

// Returns a message about the rule that a list of layer numbers breaks, or "" if it breaks none: the list must contain
// existing layers of the model, each once, in rising order.
std::string broken_layers(const Model& m, const char* key, const std::vector<std::int64_t>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < (i == 0 ? 0 : layers[i - 1] + 1) || layers[i] >= m.layers)
      return fmt::format("{}: {} is not a layer of {} in rising order", key, layers[i], m.layers);
  }
  return "";
}

std::string broken_experts(const Model& m) {
  const Moe& e = *m.moe;
  std::string broken = out_of_bounds({{"moe.experts", e.experts, 1, 65536},
                                      {"moe.top_k", e.top_k, 1, e.experts},
                                      {"moe.feed_forward", e.feed_forward, 1, 4'000'000},
                                      {"moe.shared_feed_forward", e.shared_feed_forward, 0, 4'000'000},
                                      {"moe.first_layer", e.first_layer, 0, m.layers},
                                      {"moe.hash_layers", e.hash_layers, 0, m.layers},
                                      {"moe.every", e.every, 1, m.layers},
                                      {"moe.expert_groups", e.expert_groups, 1, e.experts},
                                      {"moe.top_groups", e.top_groups, 1, e.expert_groups}});
  if (broken.empty()) broken = broken_layers(m, "moe.layers", e.layers);
  if (!broken.empty()) return broken;
  if (e.experts % e.expert_groups != 0)
    return fmt::format("moe.expert_groups: {} does not divide experts: {}", e.expert_groups, e.experts);
  if (e.top_k > e.experts / e.expert_groups * e.top_groups)
    return fmt::format("moe.top_groups: {} have fewer experts than top_k: {}", e.top_groups, e.top_k);
  if (e.capacity_factor && !(*e.capacity_factor > 0)) return "moe.capacity_factor: must be above 0, or null for none";
  if (e.pad_to_capacity && !e.capacity_factor) return "moe.pad_to_capacity: needs a capacity_factor";
  if (!(e.imbalance >= 1)) return fmt::format("moe.imbalance: {} is below 1 (uniform)", e.imbalance);
  if (e.zipf && !(*e.zipf >= 0)) return "moe.imbalance.zipf: must be at least 0";
  return "";
}

std::string broken_attention(const Model& m) {
  if (m.mla) {
    return out_of_bounds({{"mla.q_lora_rank", m.mla->q_lora_rank, 0, 1'000'000},
                          {"mla.kv_lora_rank", m.mla->kv_lora_rank, 1, 1'000'000},
                          {"mla.qk_nope_head_dim", m.mla->qk_nope_head_dim, 1, 65536},
                          {"mla.qk_rope_head_dim", m.mla->qk_rope_head_dim, 0, 65536},
                          {"mla.v_head_dim", m.mla->v_head_dim, 1, 65536}});
  }
  if (m.heads % m.kv_heads != 0) return fmt::format("heads: {} is not a multiple of kv_heads: {}", m.heads, m.kv_heads);
  return "";
}

std::string broken_recurrence(const Model& m) {
  const Recurrence& r = *m.recurrence;
  const std::string broken = out_of_bounds({{"recurrence.heads", r.heads, 1, 65536},
                                            {"recurrence.groups", r.groups, 1, 65536},
                                            {"recurrence.key_dim", r.key_dim, 1, 65536},
                                            {"recurrence.value_dim", r.value_dim, 1, 65536},
                                            {"recurrence.taps", r.taps, 1, 1024},
                                            {"recurrence.chunk", r.chunk, 1, 65536}});
  if (!broken.empty()) return broken;
  if (r.heads % r.groups != 0)
    return fmt::format("recurrence.heads: {} is not a multiple of groups: {}", r.heads, r.groups);
  return "";
}

std::string broken_compression(const Model& m) {
  const CompressedAttention& a = *m.compressed_attention;
  const std::string broken = out_of_bounds({{"compressed_attention.q_lora_rank", a.q_lora_rank, 1, 1'000'000},
                                            {"compressed_attention.rope_head_dim", a.rope_head_dim, 0, m.head_dim},
                                            {"compressed_attention.window", a.window, 1, 1'000'000'000},
                                            {"compressed_attention.sparse_rate", a.sparse_rate, 1, 1'000'000},
                                            {"compressed_attention.heavy_rate", a.heavy_rate, 1, 1'000'000},
                                            {"compressed_attention.output_groups", a.output_groups, 1, m.heads},
                                            {"compressed_attention.output_rank", a.output_rank, 1, 1'000'000}});
  if (!broken.empty()) return broken;
  if (m.heads % a.output_groups != 0)
    return fmt::format("compressed_attention.output_groups: {} does not divide heads: {}", a.output_groups, m.heads);
  if (m.kv_heads != 1) return fmt::format("kv_heads: {}, but compressed_attention has 1", m.kv_heads);
  return "";
}

// Returns a message if the layer kinds of a model do not fit its settings of compressed attention
// (CompressedAttention); "" if they fit.
std::string broken_shared_kinds(const Model& m) {
  bool shared = false, plain = m.layer_kinds.empty(), chosen = false;
  for (const LayerKind& kind : m.layer_kinds) {
    shared = shared || uses_compressed_attention(kind.mixer);
    plain = plain || kind.mixer == Mixer::attention;
    chosen = chosen || kind.mixer == Mixer::compressed_sparse;
  }
  if (shared && !m.compressed_attention) return "layer_kinds: such layers need model.compressed_attention";
  if (!shared && m.compressed_attention) return "compressed_attention: no layer is of such a kind; give layer_kinds";
  if (!shared) return "";
  if (plain) return "layer_kinds: attention beside compressed_attention is not built; choose windowed";
  if (chosen != m.indexer.has_value()) return "indexer: layers of kind compressed_sparse need it, and no others";
  return broken_compression(m);
}

std::string broken_kinds(const Model& m) {
  bool recurrent = false;
  for (const LayerKind& kind : m.layer_kinds) recurrent = recurrent || kind.mixer == Mixer::recurrence;
  if (recurrent && !m.recurrence) return "layer_kinds: layers of a recurrence need model.recurrence";
  if (!recurrent && m.recurrence) return "recurrence: no layer is of that kind; give layer_kinds";
  if (m.parallel_block && !m.layer_kinds.empty() && !m.recurrence && !m.compressed_attention)
    return "layer_kinds: a parallel_block has one kind of layers";
  if (const std::string broken = broken_shared_kinds(m); !broken.empty()) return broken;
  if (m.recurrence) return broken_recurrence(m);
  return "";
}

std::string broken_indexer(const Model& m) {
  const std::string broken = out_of_bounds({{"indexer.heads", m.indexer->heads, 1, 65536},
                                            {"indexer.head_dim", m.indexer->head_dim, 1, 65536},
                                            {"indexer.top_k", m.indexer->top_k, 1, 1'000'000'000}});
  if (!broken.empty()) return broken;
  if (m.compressed_attention) return "";
  if (!m.mla || m.mla->q_lora_rank == 0) return "indexer: needs mla with compressed queries (q_lora_rank above 0)";
  return "";
}

std::string broken_norms(const Model& m) {
  if (!m.pre_norms && !m.post_norms) return "pre_norms: a layer needs norms; set post_norms: true";
  if (!m.pre_norms && m.parallel_block) return "pre_norms: a parallel_block reads its norm; leave one of the two out";
  if (m.parallel_norms && !m.parallel_block) return "parallel_norms: needs parallel_block: true";
  if (m.qk_norm && m.qk_norm_all) return "qk_norm_all: is instead of qk_norm; leave one of the two out";
  return "";
}

}  // namespace

std::string broken_rule(const Model& m) {
  std::string broken = out_of_bounds({{"layers", m.layers, 1, kMostLayers},
                                      {"hidden", m.hidden, 1, 1'000'000},
                                      {"heads", m.heads, 1, 65536},
                                      {"kv_heads", m.kv_heads, 1, 65536},
                                      {"head_dim", m.head_dim, 1, 65536},
                                      {"feed_forward", m.feed_forward, 1, 4'000'000},
                                      {"vocab", m.vocab, 1, 100'000'000},
                                      {"max_positions", m.max_positions, 0, 1'000'000'000},
                                      {"mtp_layers", m.mtp_layers, 0, 1000}});
  if (broken.empty()) broken = broken_attention(m);
  if (broken.empty()) broken = broken_norms(m);
  if (broken.empty() && m.moe) broken = broken_experts(m);
  if (broken.empty()) broken = broken_kinds(m);
  if (broken.empty() && m.indexer) broken = broken_indexer(m);
  if (broken.empty() && m.hyper_connections)
    broken = out_of_bounds({{"hyper_connections.streams", m.hyper_connections->streams, 2, 64},
                            {"hyper_connections.iterations", m.hyper_connections->iterations, 0, 10'000}});
  if (!broken.empty()) return broken;
  for (const double cap : {m.attention_softcap, m.logit_softcap}) {
    if (!(cap >= 0 && cap < 1e6)) return fmt::format("softcap: {} is not in [0, 1e6)", cap);
  }
  if (!(m.activation_clamp >= 0 && m.activation_clamp < 1e6))
    return fmt::format("activation_clamp: {} is not in [0, 1e6)", m.activation_clamp);
  if (m.activation_clamp > 0 && !m.gated)
    return "activation_clamp: only a gated activation is clamped; set gated: true";
  if (!(m.dropout >= 0 && m.dropout < 1)) return fmt::format("dropout: {} is not in [0, 1)", m.dropout);
  if (!m.sliding_window) return "";
  broken = out_of_bounds({{"sliding_window.window", m.sliding_window->window, 1, 1'000'000'000},
                          {"sliding_window.every", m.sliding_window->every, 1, m.layers}});
  return broken.empty() ? broken_layers(m, "sliding_window.full_layers", m.sliding_window->full_layers) : broken;
}

std::int64_t prediction_layer(const Model& m) { return m.compressed_attention ? m.layers : m.layers - 1; }

bool is_hashed(const Model& m, std::int64_t layer) { return m.moe && layer < m.moe->hash_layers; }

LayerKind layer_kind(const Model& m, std::int64_t layer) {
  if (m.layer_kinds.empty()) return {};
  if (m.compressed_attention && layer >= m.layers) return {Mixer::windowed, true};
  return m.layer_kinds[static_cast<std::size_t>(std::min(layer, m.layers - 1)) % m.layer_kinds.size()];
}

bool has_experts(const Model& m, std::int64_t layer) {
  if (!layer_kind(m, layer).feed_forward) return false;
  if (m.moe && !m.moe->layers.empty()) return std::ranges::binary_search(m.moe->layers, layer);
  return m.moe && layer >= m.moe->first_layer && (layer - m.moe->first_layer) % m.moe->every == 0;
}

// The number of layers with experts is computed from first_layer and every where that is possible, instead of looping
// over layers, because an input file may claim any number of layers.
std::int64_t experts_before(const Model& m, std::int64_t layer) {
  if (!m.moe) return 0;
  const Moe& moe = *m.moe;
  if (!m.layer_kinds.empty()) {
    std::int64_t before = 0;
    for (std::int64_t i = 0; i < std::min(layer, kMostLayers); ++i) before += has_experts(m, i) ? 1 : 0;
    return before;
  }
  if (!moe.layers.empty()) return std::ranges::lower_bound(moe.layers, layer) - moe.layers.begin();
  return layer <= moe.first_layer ? 0 : ceil_div(layer - moe.first_layer, moe.every);
}

std::int64_t elements(const Parameter& p) { return p.out * p.in * (p.experts > 0 ? p.experts : 1); }

}  // namespace orrery
