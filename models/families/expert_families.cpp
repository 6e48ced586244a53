// This file has the table of model families with a mixture of experts. Properties and defaults are those of the classes
// in transformers (configuration_*.py and modeling_*.py of each model_type), or of the code next to a model's file if
// transformers has no class. Not every default was checked against the source: if a model's parameter count differs
// from the one on the model hub, one of the defaults is wrong.
#include <fmt/format.h>

#include "models/families/family.h"

namespace orrery {
namespace {

using namespace habit;

constexpr std::string_view kQwen2MoeSizes =
    R"({"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "vocab_size": 151936})";
constexpr std::string_view kQwen3MoeSizes =
    R"({"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 4, "vocab_size": 151936})";
constexpr std::string_view kLlama4Sizes =
    R"({"hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers": 48,
        "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048,
        "num_local_experts": 16, "num_experts_per_tok": 1, "attention_chunk_size": 8192})";

// Llama 4: norms of queries and keys have no weights, and most layers attend only within chunks of the sequence.
void read_llama4_keys(const Config& config, Model& m) {
  m.feed_forward = config.count({"intermediate_size_mlp"});
  if (config.flag({"use_qk_norm"}, true))
    m.remarks.emplace_back("qk_norm: norms of queries and keys without weights are left out");
  if (const std::int64_t chunk = config.count({"attention_chunk_size"}, 0); chunk > 0)
    m.remarks.push_back(
        fmt::format("attention_chunk_size: planned as attention to all tokens, which it is up to {} of them", chunk));
}

void read_oss(const Config&, Model& m) {
  m.attention_sinks = true;
  m.mlp_bias = true;
  m.moe->router_bias = true;
}

// The router's weights are in fp32 in MiniMax's files, and vLLM multiplies by them in fp32 (models/minimax_m2.py,
// gate).
void read_minimax(const Config& config, Model& m) {
  m.moe->router_fp32 = true;
  m.qk_norm_all = config.flag({"use_qk_norm"}, true);
  if (const std::string type = config.text({"qk_norm_type"}); m.qk_norm_all && !type.empty() && type != "per_layer")
    config.fail("qk_norm_type", "is per_layer in all files that are known here; choose another model");
  if (config.flag({"use_mtp"}, false))
    m.remarks.emplace_back("use_mtp: modules of multi-token prediction are left out; set model.mtp_layers for them");
}

void read_glm4_moe(const Config& config, Model& m) { m.qk_norm = config.flag({"use_qk_norm"}, false); }

// MiniCPM 3 has no key for the width of a value head, which is hidden / heads.
void read_minicpm3(const Config&, Model& m) {
  if (m.mla->v_head_dim == 0) m.mla->v_head_dim = m.hidden / m.heads;
}

// DBRX's files have the keys of attention and the keys of experts in objects of their own.
void read_dbrx(const Config& config, Model& m) {
  const Config attention = config.part("attn_config"), experts = config.part("ffn_config");
  m.kv_heads = attention.count({"kv_n_heads"});
  Moe moe = {.experts = experts.count({"moe_num_experts"}), .top_k = experts.count({"moe_top_k"})};
  m.feed_forward = moe.feed_forward = experts.count({"ffn_hidden_size"});
  m.moe = moe;
}

constexpr Family kExpertFamilies[] = {
    {"mixtral", "MixtralForCausalLM", 0, R"({"num_key_value_heads": 8})", Experts::mixtral},
    {"qwen2_moe", "Qwen2MoeForCausalLM", kQkvBias | kNoWindow, kQwen2MoeSizes, Experts::qwen},
    {"qwen3_moe", "Qwen3MoeForCausalLM", kQkNorm | kNoWindow, kQwen3MoeSizes, Experts::qwen},
    {"qwen3_vl_moe_text", "", kQkNorm | kNoWindow, kQwen3MoeSizes, Experts::qwen},
    {"qwen3_omni_moe_text", "", kQkNorm | kNoWindow, kQwen3MoeSizes, Experts::qwen},
    {"deepseek", "DeepseekForCausalLM", 0, "", Experts::deepseek},
    {"deepseek_v2", "DeepseekV2ForCausalLM", kLatent, "", Experts::deepseek},
    {"deepseek_v3", "DeepseekV3ForCausalLM", kLatent | kSigmoid, "", Experts::deepseek},
    {"kimi_k2", "", kLatent | kSigmoid, "", Experts::deepseek},
    {"glm4_moe", "Glm4MoeForCausalLM", kOnlyQkvBias | kSigmoid, R"({"num_key_value_heads": 8, "n_shared_experts": 1})",
     Experts::deepseek, read_glm4_moe},
    {"glm4v_moe_text", "", kOnlyQkvBias | kSigmoid, R"({"num_key_value_heads": 8, "attention_bias": true})",
     Experts::deepseek},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", kLatent | kSigmoid, "", Experts::deepseek},
    {"dots1", "Dots1ForCausalLM", kQkNorm | kSigmoid, "", Experts::deepseek},
    {"minicpm3", "MiniCPM3ForCausalLM", kLatent, R"({"tie_word_embeddings": true})", Experts::none, read_minicpm3},
    {"minimax_m2", "MiniMaxM2ForCausalLM", 0, "", Experts::mixtral, read_minimax},
    {"gpt_oss", "GptOssForCausalLM", 0,
     R"({"num_key_value_heads": 8, "head_dim": 64, "attention_bias": true, "sliding_window": 128,
         "sliding_window_pattern": 2, "num_local_experts": 128, "num_experts_per_tok": 4})",
     Experts::mixtral, read_oss},
    {"olmoe", "OlmoeForCausalLM", kQkNormAll, R"({"num_experts": 64, "num_experts_per_tok": 8})", Experts::mixtral},
    {"granitemoe", "GraniteMoeForCausalLM", 0, "", Experts::mixtral},
    {"granitemoeshared", "GraniteMoeSharedForCausalLM", 0, "", Experts::mixtral},
    {"llama4_text", "Llama4ForCausalLM", 0, kLlama4Sizes, Experts::llama4, read_llama4_keys},
    {"dbrx", "DbrxForCausalLM", kLayerNorm | kNoNormBias | kFourfold, "", Experts::none, read_dbrx},
    {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", 0,
     R"({"num_key_value_heads": 4, "tie_word_embeddings": true, "moe_num_experts": 64, "moe_k": 6,
         "moe_intermediate_size": 1536, "moe_num_shared_experts": 2, "moe_layer_start_index": 1})",
     Experts::ernie},
};

}  // namespace

std::span<const Family> expert_families() { return kExpertFamilies; }

}  // namespace orrery
