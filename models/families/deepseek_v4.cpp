// This file reads DeepSeek-V4's keys. Files have either of two spellings: compress_ratios and num_hash_layers
// (DeepSeek's own), or layer_types with compress_rates and mlp_layer_types (transformers,
// models/deepseek_v4/configuration_deepseek_v4.py, the source of the defaults).
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "models/families/family.h"

namespace orrery {
namespace {

using nlohmann::json;

constexpr const char* kSparseType = "compressed_sparse_attention";
constexpr const char* kHeavyType = "heavily_compressed_attention";

const json& list_in(const Config& config, const char* key, const json& list, std::int64_t layers) {
  if (!list.is_array() || static_cast<std::int64_t>(list.size()) < layers)
    config.fail(key, fmt::format("a list of {} entries is needed, one for each layer", layers));
  return list;
}

// Reads how many tokens are compressed into one key, for each of the two kinds of compressed attention. In DeepSeek's
// code the layers with 4 tokens a key are the sparse ones, whose index chooses keys.
void read_rates(const Config& config, CompressedAttention& a) {
  const Config rates = config.part("compress_rates");
  a.sparse_rate = rates.count({kSparseType}, config.count({"compress_rate_csa"}, 4));
  a.heavy_rate = rates.count({kHeavyType}, config.count({"compress_rate_hca"}, 128));
}

Mixer mixer_of_type(const Config& config, std::size_t layer, const json& type) {
  if (type == "sliding_attention") return Mixer::windowed;
  if (type == kSparseType) return Mixer::compressed_sparse;
  if (type == kHeavyType) return Mixer::heavily_compressed;
  config.fail("layer_types", fmt::format("layer {}: {}: kinds are sliding_attention, {} and {}", layer,
                                         type.dump().substr(0, 40), kSparseType, kHeavyType));
}

// Returns the kind of attention of a layer from its number of tokens per compressed key: 0 means no compressed keys,
// only a sliding window; sparse_rate means compressed sparse attention; any other number means heavily compressed
// attention, and becomes heavy_rate.
Mixer mixer_of_ratio(const Config& config, std::size_t layer, const json& ratio, CompressedAttention& a,
                     std::optional<std::int64_t>& heavy) {
  if (!ratio.is_number_integer() || ratio < 0 || ratio > 1'000'000)
    config.fail("compress_ratios",
                fmt::format("layer {}: {} is no number of tokens", layer, ratio.dump().substr(0, 40)));
  const auto tokens = ratio.get<std::int64_t>();
  if (tokens == 0) return Mixer::windowed;
  if (tokens == a.sparse_rate) return Mixer::compressed_sparse;
  if (heavy && *heavy != tokens)
    config.fail("compress_ratios", fmt::format("layer {}: {} beside {}: one ratio above {} is built", layer, tokens,
                                               *heavy, a.sparse_rate));
  heavy = a.heavy_rate = tokens;
  return Mixer::heavily_compressed;
}

// Returns the kind of attention of a layer if the config.json lists none for its layers: two heavily compressed layers
// come first, then sparse and heavily compressed ones alternate, as in transformers.
Mixer mixer_by_default(std::int64_t layer) {
  return layer < 2 || layer % 2 == 0 ? Mixer::heavily_compressed : Mixer::compressed_sparse;
}

std::vector<LayerKind> kinds_of(const Config& config, const Model& m, CompressedAttention& a) {
  const json* types = config.find({"layer_types"});
  const json* ratios = types == nullptr ? config.find({"compress_ratios"}) : nullptr;
  if (types != nullptr) list_in(config, "layer_types", *types, m.layers);
  if (ratios != nullptr) list_in(config, "compress_ratios", *ratios, m.layers);
  std::optional<std::int64_t> heavy;
  std::vector<LayerKind> kinds;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    kinds.push_back({types != nullptr    ? mixer_of_type(config, at, (*types)[at])
                     : ratios != nullptr ? mixer_of_ratio(config, at, (*ratios)[at], a, heavy)
                                         : mixer_by_default(i),
                     true});
  }
  return kinds;
}

// Returns the number of layers, from the first on, in which a fixed table assigns experts to tokens (hash routing).
std::int64_t hash_layers(const Config& config, std::int64_t layers) {
  const json* types = config.find({"mlp_layer_types"});
  if (types == nullptr) return std::min(layers, config.count({"num_hash_layers"}, 3));
  list_in(config, "mlp_layer_types", *types, layers);
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    const json& type = (*types)[static_cast<std::size_t>(i)];
    if (type != "hash_moe" && type != "moe")
      config.fail("mlp_layer_types",
                  fmt::format("layer {}: {}: kinds are hash_moe and moe", i, type.dump().substr(0, 40)));
    if (type == "hash_moe" && first < i)
      config.fail("mlp_layer_types", fmt::format("layer {}: hash_moe after other layers is not built", i));
    if (type == "hash_moe") ++first;
  }
  return first;
}

std::int64_t rotated_columns(const Config& config, const Model& m) {
  const double part = config.real({"partial_rotary_factor"}, 0);
  return part > 0 ? static_cast<std::int64_t>(part * static_cast<double>(m.head_dim))
                  : config.count({"qk_rope_head_dim"});
}

}  // namespace

void read_deepseek_v4(const Config& config, Model& m) {
  if (!m.moe) config.fail("n_routed_experts", "0: layers without experts are not built; choose another model");
  CompressedAttention a = {.q_lora_rank = config.count({"q_lora_rank"}),
                           .rope_head_dim = rotated_columns(config, m),
                           .window = config.count({"sliding_window"}),
                           .output_groups = config.count({"o_groups"}),
                           .output_rank = config.count({"o_lora_rank"})};
  read_rates(config, a);
  const std::vector<LayerKind> kinds = kinds_of(config, m, a);
  set_kinds(m, kinds);
  m.compressed_attention = a;
  if (std::ranges::find(kinds, Mixer::compressed_sparse, &LayerKind::mixer) != kinds.end())
    m.indexer = {.heads = config.count({"index_n_heads"}),
                 .head_dim = config.count({"index_head_dim"}),
                 .top_k = config.count({"index_topk"})};
  if (const std::int64_t streams = config.count({"hc_mult"}); streams > 1)
    m.hyper_connections = {.streams = streams, .iterations = config.count({"hc_sinkhorn_iters"})};
  else
    config.fail("hc_mult", "such a file with a single residual stream is not built; 4 is usual");
  m.attention_sinks = true;
  m.feed_forward = m.moe->feed_forward;
  m.moe->hash_layers = hash_layers(config, m.layers);
  m.moe->sigmoid_scores = true;
  m.remarks.emplace_back("scoring_func: sqrtsoftplus is planned as sigmoid, another function of every score");
}

}  // namespace orrery
