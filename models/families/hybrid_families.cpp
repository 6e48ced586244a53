// This file has the table of model families whose layers are of several types, or whose attention reads only the tokens
// that an index chooses. Properties and defaults are those of the classes in transformers (configuration_*.py and
// modeling_*.py of each model_type), or of the code next to a model's file if transformers has no class.
#include <algorithm>

#include <fmt/format.h>

#include "models/families/family.h"

namespace orrery {
namespace {

using namespace habit;
using nlohmann::json;

constexpr std::string_view kQwen3NextSizes =
    R"({"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 48, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512, "partial_rotary_factor": 0.25})";
constexpr std::string_view kDeepSeekV4Sizes =
    R"({"head_dim": 512, "num_key_value_heads": 1, "q_lora_rank": 1024, "qk_rope_head_dim": 64,
        "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 6,
        "scoring_func": "sqrtsoftplus", "sliding_window": 128, "o_groups": 8, "o_lora_rank": 1024,
        "index_n_heads": 64, "index_head_dim": 128, "index_topk": 512, "hc_mult": 4, "hc_sinkhorn_iters": 20,
        "num_nextn_predict_layers": 1})";
constexpr std::string_view kQwen35Sizes =
    R"({"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32, "num_attention_heads": 16,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 248320, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32})";
constexpr std::string_view kQwen35MoeSizes =
    R"({"hidden_size": 2048, "intermediate_size": 512, "num_hidden_layers": 40, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 248320, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512})";

// Qwen3-Next and Qwen3.5: the layers with full attention are those that layer_types lists, else every
// full_attention_interval-th layer; all others have linear attention.
std::vector<LayerKind> qwen_kinds(const Config& config, const Model& m) {
  const std::int64_t every = std::max<std::int64_t>(1, config.count({"full_attention_interval"}, 4));
  const json* list = config.find({"layer_types"});
  if (list != nullptr && (!list->is_array() || static_cast<std::int64_t>(list->size()) != m.layers))
    config.fail("layer_types", fmt::format("a list of {} kinds is needed, one for each layer", m.layers));
  std::vector<LayerKind> kinds;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const json kind = list == nullptr ? json((i + 1) % every == 0 ? "full_attention" : "linear_attention")
                                      : (*list)[static_cast<std::size_t>(i)];
    if (kind != "full_attention" && kind != "linear_attention")
      config.fail("layer_types", fmt::format("layer {}: {}: kinds are full_attention and linear_attention", i,
                                             kind.dump().substr(0, 40)));
    kinds.push_back({kind == "full_attention" ? Mixer::attention : Mixer::recurrence, true});
  }
  return kinds;
}

void read_qwen_next(const Config& config, Model& m) {
  const std::vector<LayerKind> kinds = qwen_kinds(config, m);
  m.attention_gate = config.flag({"attn_output_gate"}, true);
  set_kinds(m, kinds);
  if (config.count({"mtp_num_hidden_layers"}, 0) > 0)
    m.remarks.emplace_back(
        "mtp_num_hidden_layers: modules of multi-token prediction are left out; set "
        "model.mtp_layers for them");
  if (m.layer_kinds == std::vector<LayerKind>(1)) {
    m.layer_kinds.clear();
    return;
  }
  m.recurrence = {.rule = RecurrenceRule::gated_delta,
                  .heads = config.count({"linear_num_value_heads"}),
                  .groups = config.count({"linear_num_key_heads"}),
                  .key_dim = config.count({"linear_key_head_dim"}),
                  .value_dim = config.count({"linear_value_head_dim"}),
                  .taps = config.count({"linear_conv_kernel_dim"})};
}

// Nemotron-H: each layer is only a token mixer (Mamba or attention), only an MLP or only experts, and attention has no
// position encoding (NVIDIA 2025, arXiv 2504.03624, section 2.1).
void read_nemotron_h(const Config& config, Model& m) {
  std::vector<LayerKind> kinds;
  for (const char letter : hybrid_letters(config, m.layers))
    kinds.push_back(letter == 'M'   ? LayerKind{Mixer::recurrence, false}
                    : letter == '*' ? LayerKind{Mixer::attention, false}
                                    : LayerKind{Mixer::none, true});
  set_kinds(m, kinds);
  m.positions = Positions::none;
  m.head_dim = config.count({"attention_head_dim", "head_dim"}, m.head_dim);
  for (const char* key : {"use_bias", "mamba_proj_bias"}) {
    if (config.flag({key}, false)) config.fail(key, "true: biases of a recurrence's projections are not built");
  }
  if (config.count({"moe_latent_size"}, 0) > 0)
    config.fail("moe_latent_size", "experts behind a narrower projection are not built; choose another model");
  if (std::ranges::find(kinds, Mixer::recurrence, &LayerKind::mixer) == kinds.end()) return;
  m.recurrence = {.rule = RecurrenceRule::state_space,
                  .heads = config.count({"mamba_num_heads"}),
                  .groups = config.count({"n_groups"}),
                  .key_dim = config.count({"ssm_state_size"}),
                  .value_dim = config.count({"mamba_head_dim"}),
                  .taps = config.count({"conv_kernel"}, 4),
                  .convolution_bias = config.flag({"use_conv_bias"}, true),
                  .chunk = config.count({"chunk_size"}, 128)};
}

// DeepSeek-V3.2 and GLM-5 have attention to tokens that an index chooses. Files in which several layers share one
// index's choice are rejected.
void read_indexed(const Config& config, Model& m) {
  if (config.count({"index_topk_freq"}, 1) > 1)
    config.fail("index_topk_freq",
                "layers that share the tokens that an index chose are not built; choose another model");
  m.indexer = {.heads = config.count({"index_n_heads"}),
               .head_dim = config.count({"index_head_dim"}),
               .top_k = config.count({"index_topk"})};
}

constexpr Family kHybridFamilies[] = {
    {"qwen3_next", "Qwen3NextForCausalLM", kQkNorm | kNoWindow, kQwen3NextSizes, Experts::qwen, read_qwen_next},
    {"qwen3_5_text", "Qwen3_5ForCausalLM", kQkNorm | kNoWindow, kQwen35Sizes, Experts::none, read_qwen_next},
    {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", kQkNorm | kNoWindow, kQwen35MoeSizes, Experts::qwen, read_qwen_next},
    {"nemotron_h", "NemotronHForCausalLM", kUngated, "", Experts::nemotron, read_nemotron_h},
    {"deepseek_v32", "DeepseekV32ForCausalLM", kLatent | kSigmoid, "", Experts::deepseek, read_indexed},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", kLatent | kSigmoid, R"({"n_shared_experts": 1})", Experts::deepseek,
     read_indexed},
    {"deepseek_v4", "DeepseekV4ForCausalLM", kSigmoid | kNoWindow | kFourfold, kDeepSeekV4Sizes, Experts::deepseek,
     read_deepseek_v4},
};

}  // namespace

void set_kinds(Model& m, const std::vector<LayerKind>& kinds) {
  for (std::size_t n = 1; n <= kinds.size(); ++n) {
    bool repeats = true;
    for (std::size_t i = n; i < kinds.size() && repeats; ++i) repeats = kinds[i] == kinds[i % n];
    if (!repeats) continue;
    m.layer_kinds.assign(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(n));
    return;
  }
}

std::string hybrid_letters(const Config& config, std::int64_t layers) {
  std::string letters = config.text({"hybrid_override_pattern"});
  const json* list = config.find({"layers_block_type"});
  for (std::size_t i = 0; list != nullptr && list->is_array() && i < list->size(); ++i) {
    const json& kind = (*list)[i];
    letters += kind == "mamba" ? 'M' : kind == "attention" ? '*' : kind == "mlp" ? '-' : kind == "moe" ? 'E' : '?';
  }
  const char* key = list == nullptr ? "hybrid_override_pattern" : "layers_block_type";
  if (static_cast<std::int64_t>(letters.size()) != layers)
    config.fail(key, fmt::format("{} kinds are needed, one for each layer", layers));
  if (letters.find_first_not_of("M*-E") != std::string::npos)
    config.fail(key, "kinds are M (mamba), * (attention), - (mlp) and E (moe)");
  return letters;
}

std::span<const Family> hybrid_families() { return kHybridFamilies; }

}  // namespace orrery
