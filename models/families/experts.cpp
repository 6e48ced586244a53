// This file reads the sizes of mixtures of experts from a config.json, where each model family has different keys for
// them.
#include <algorithm>

#include "models/base/names.h"
#include "models/base/units.h"
#include "models/families/family.h"

namespace orrery {
namespace {

using nlohmann::json;

constexpr Keys kCount = {"n_routed_experts", "num_local_experts", "num_experts", "num_routed_experts",
                         "moe_num_experts"};

// Sets which layers have experts: by the first layer and the interval (moe.first_layer, moe.every) if the layers are
// evenly spaced, else by the list moe.layers.
void set_layers(Moe& moe, const std::vector<std::int64_t>& routed, std::int64_t layers) {
  moe.first_layer = routed.front();
  moe.every = routed.size() > 1 ? routed[1] - routed[0] : std::max<std::int64_t>(1, layers - routed.front());
  const Model rule = {.layers = layers, .moe = moe};
  for (std::int64_t i = 0; i < layers; ++i) {
    if (has_experts(rule, i) != std::ranges::binary_search(routed, i)) moe.layers = routed;
  }
}

// Returns the layer indices that a key of the file lists, in rising order.
std::vector<std::int64_t> layers_in(const Config& config, const char* key, std::int64_t layers) {
  std::vector<std::int64_t> result;
  const json* list = config.find({key});
  if (list == nullptr) return result;
  if (!list->is_array()) config.fail(key, "a list of layers is needed");
  for (const json& layer : *list) {
    if (!layer.is_number_integer() || layer < 0 || layer >= layers) config.fail(key, "holds what is no layer's number");
    result.push_back(layer.get<std::int64_t>());
  }
  std::sort(result.begin(), result.end());
  return result;
}

template <class Has>
std::vector<std::int64_t> layers_that(std::int64_t layers, Has has) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < layers; ++i) {
    if (has(i)) result.push_back(i);
  }
  return result;
}

// Qwen: every decoder_sparse_step-th layer has experts, except layers that the file lists as dense.
std::vector<std::int64_t> read_qwen(const Config& config, const Model& m, Moe& moe) {
  moe.feed_forward = config.count({"moe_intermediate_size"});
  moe.shared_feed_forward = config.count({"shared_expert_intermediate_size"}, 0);
  moe.shared_gate = moe.shared_feed_forward > 0;
  const std::int64_t step = std::max<std::int64_t>(1, config.count({"decoder_sparse_step"}, 1));
  const std::vector<std::int64_t> dense = layers_in(config, "mlp_only_layers", m.layers);
  return layers_that(m.layers,
                     [&](std::int64_t i) { return (i + 1) % step == 0 && !std::ranges::binary_search(dense, i); });
}

// Returns the method by which a token's experts are chosen (DeepSeek's topk_method). DeepSeek-V3's own configuration
// class has no key for the method, because that class knows a single one.
std::string top_method(const Config& config, bool sigmoid) {
  std::string method = config.text({"topk_method"});
  if (method.empty()) return sigmoid ? "noaux_tc" : "greedy";
  constexpr std::string_view known[] = {"greedy", "group_limited_greedy", "noaux_tc"};
  if (std::find(std::begin(known), std::end(known), method) == std::end(known))
    config.fail("topk_method", unknown_name("way", method, known));
  return method;
}

std::vector<std::int64_t> read_deepseek(const Config& config, const Family& family, const Model& m, Moe& moe) {
  const bool sigmoid = family.has(habit::kSigmoid);
  moe.feed_forward = config.count({"moe_intermediate_size"});
  moe.shared_feed_forward = config.count({"n_shared_experts", "num_shared_experts"}, 0) * moe.feed_forward;
  const std::string score = config.text({"scoring_func"});
  moe.sigmoid_scores = score.empty() ? sigmoid : score == "sigmoid";
  const std::string method = top_method(config, sigmoid);
  moe.correction_bias = sigmoid && method == "noaux_tc";
  const bool limited = method != "greedy";
  moe.expert_groups = limited ? std::max<std::int64_t>(1, config.count({"n_group"}, 1)) : 1;
  moe.top_groups = limited ? std::max<std::int64_t>(1, config.count({"topk_group"}, 1)) : 1;
  const std::int64_t every = std::max<std::int64_t>(1, config.count({"moe_layer_freq"}, 1));
  const std::int64_t first = config.count({"first_k_dense_replace"}, 0);
  return layers_that(m.layers, [&](std::int64_t i) { return i >= first && i % every == 0; });
}

// Mixtral and similar families: every layer has experts, whose feed-forward width is in the key that other families use
// for the MLP.
std::vector<std::int64_t> read_mixtral(const Config& config, const Model& m, Moe& moe) {
  moe.feed_forward = m.feed_forward;
  moe.shared_feed_forward = config.count({"shared_intermediate_size"}, 0);
  moe.sigmoid_scores = config.text({"scoring_func"}) == "sigmoid";
  moe.correction_bias = config.flag({"use_routing_bias"}, false);
  return layers_that(m.layers, [](std::int64_t) { return true; });
}

// Llama 4: a shared expert of the same width as each routed expert, which runs for every token; scores are sigmoids.
std::vector<std::int64_t> read_llama4(const Config& config, const Model& m, Moe& moe) {
  moe.feed_forward = moe.shared_feed_forward = config.count({"intermediate_size"});
  moe.sigmoid_scores = true;
  if (config.find({"moe_layers"}) != nullptr) return layers_in(config, "moe_layers", m.layers);
  const std::int64_t step = std::max<std::int64_t>(1, config.count({"interleave_moe_layer_step"}, 1));
  return layers_that(m.layers, [&](std::int64_t i) { return (i + 1) % step == 0; });
}

std::vector<std::int64_t> read_ernie(const Config& config, const Model& m, Moe& moe) {
  moe.feed_forward = config.count({"moe_intermediate_size"});
  moe.shared_feed_forward = config.count({"moe_num_shared_experts"}, 0) * moe.feed_forward;
  moe.correction_bias = true;
  const std::int64_t step = std::max<std::int64_t>(1, config.count({"moe_layer_interval"}, 1));
  const std::int64_t first = config.count({"moe_layer_start_index"}, 0);
  const double end = config.real({"moe_layer_end_index"}, -1);  // -1: experts up to the last layer
  const std::int64_t last = end < 0 ? m.layers - 1 : static_cast<std::int64_t>(end);
  return layers_that(m.layers, [&](std::int64_t i) { return i >= first && i <= last && (i + 1) % step == 0; });
}

// Nemotron-H has layers that consist of experts only; several shared experts are described as one shared expert whose
// width is that of all of them together.
std::vector<std::int64_t> read_nemotron(const Config& config, const Model& m, Moe& moe) {
  moe.feed_forward = config.count({"moe_intermediate_size"});
  moe.shared_feed_forward =
      config.count({"n_shared_experts"}, 0) * config.count({"moe_shared_expert_intermediate_size"}, 0);
  moe.sigmoid_scores = moe.correction_bias = true;
  moe.expert_groups = std::max<std::int64_t>(1, config.count({"n_group"}, 1));
  moe.top_groups = std::max<std::int64_t>(1, config.count({"topk_group"}, 1));
  const std::string letters = hybrid_letters(config, m.layers);
  return layers_that(m.layers, [&](std::int64_t i) { return letters[static_cast<std::size_t>(i)] == 'E'; });
}

std::vector<std::int64_t> read_layers(const Config& config, const Family& family, const Model& m, Moe& moe) {
  switch (family.experts) {
    case Experts::qwen:
      return read_qwen(config, m, moe);
    case Experts::deepseek:
      return read_deepseek(config, family, m, moe);
    case Experts::llama4:
      return read_llama4(config, m, moe);
    case Experts::ernie:
      return read_ernie(config, m, moe);
    case Experts::nemotron:
      return read_nemotron(config, m, moe);
    default:
      return read_mixtral(config, m, moe);
  }
}

}  // namespace

std::optional<Moe> read_experts(const Config& config, const Family& family, const Model& m) {
  Moe moe = {.experts = config.count(kCount, 0)};
  if (moe.experts == 0) return std::nullopt;
  if (family.experts == Experts::none)
    config.fail("num_experts", "this family has no experts that are known here; choose another model");
  moe.top_k = config.count({"num_experts_per_tok", "experts_per_token", "moe_topk", "top_k", "moe_k"});
  moe.aux_loss = config.real({"router_aux_loss_coef", "aux_loss_alpha"}, 0.001);
  const std::vector<std::int64_t> routed = read_layers(config, family, m, moe);
  if (routed.empty()) return std::nullopt;
  set_layers(moe, routed, m.layers);
  return moe;
}

}  // namespace orrery
