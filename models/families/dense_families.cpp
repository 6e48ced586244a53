// This file has the table of families of dense models with RMSNorm and a gated MLP, and of similar families. Properties
// and defaults are those of the classes in transformers (configuration_*.py and modeling_*.py of each model_type). Not
// every default was checked against the source: if a model's parameter count differs from the one on the model hub, one
// of the defaults is wrong.
#include "models/families/family.h"

namespace orrery {
namespace {

using namespace habit;

constexpr std::string_view kLlama =
    R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "vocab_size": 32000})";
constexpr std::string_view kMistral =
    R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": 4096})";
constexpr std::string_view kMinistral =
    R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072})";
constexpr std::string_view kQwen2 =
    R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "vocab_size": 151936})";
constexpr std::string_view kQwen2Vl =
    R"({"hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64,
        "num_key_value_heads": 8, "vocab_size": 152064})";
constexpr std::string_view kQwen3 =
    R"({"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "head_dim": 128, "vocab_size": 151936})";
constexpr std::string_view kGemma =
    R"({"hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 16, "head_dim": 256, "vocab_size": 256000, "tie_word_embeddings": true})";
constexpr std::string_view kGemma2 =
    R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "tie_word_embeddings": true,
        "sliding_window": 4096, "sliding_window_pattern": 2, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0})";
constexpr std::string_view kGemma3 =
    R"({"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "tie_word_embeddings": true,
        "sliding_window": 4096, "sliding_window_pattern": 6})";

// InternLM: the key `bias` is for the biases of all four matrices of attention; the MLP never has biases.
void read_internlm(const Config& config, Model& m) {
  m.qkv_bias = m.attention_output_bias = config.flag({"bias"}, true);
}

// InternLM 3: the key qkv_bias is for q, k and v, the key bias for attention's output and the MLP.
void read_internlm3(const Config& config, Model& m) {
  m.qkv_bias = config.flag({"qkv_bias"}, false);
  m.attention_output_bias = m.mlp_bias = config.flag({"bias"}, false);
}

// Baichuan 13B has ALiBi and no rotary positions. Its file is recognized by the lack of max_position_embeddings.
void read_baichuan(const Config& config, Model& m) {
  if (config.find({"max_position_embeddings"}) != nullptr) return;
  m.positions = Positions::alibi;
  m.remarks.emplace_back("positions: alibi, as in Baichuan's 13B, since the file has no max_position_embeddings");
}

// ChatGLM's own configuration class: the number of key/value groups is used only if multi_query_attention is true.
void read_chatglm(const Config& config, Model& m) {
  if (!config.flag({"multi_query_attention"}, false)) m.kv_heads = m.heads;
  m.bias = config.flag({"add_bias_linear"}, false);
  m.qkv_bias = config.flag({"add_qkv_bias"}, false);
  m.norm = config.flag({"rmsnorm"}, true) ? Norm::rmsnorm : Norm::layernorm;
  if (!config.flag({"post_layer_norm"}, true))
    config.fail("post_layer_norm", "a model without final norm is not built");
  m.remarks.emplace_back("mlp: gated (SwiGLU), as ChatGLM's own code has it; the file does not say");
}

// The first Qwen models: the key intermediate_size is the width of the gate and up projections together.
void read_qwen(const Config& config, Model& m) {
  m.feed_forward /= 2;
  if (!config.flag({"no_bias"}, true)) config.fail("no_bias", "false: biases on output and MLP are not known here");
}

void read_seed(const Config& config, Model& m) { m.attention_output_bias = config.flag({"attention_out_bias"}, false); }

void read_ernie_bias(const Config& config, Model& m) { m.bias = config.flag({"use_bias"}, false); }

constexpr Family kDenseFamilies[] = {
    {"llama", "LlamaForCausalLM", 0, kLlama},
    {"mistral", "MistralForCausalLM", 0, kMistral},
    {"ministral3", "Ministral3ForCausalLM", 0, kMinistral},
    {"qwen", "QWenLMHeadModel", kQkvBias, "", Experts::none, read_qwen},
    {"qwen2", "Qwen2ForCausalLM", kQkvBias | kNoWindow, kQwen2},
    {"qwen2_vl_text", "", kQkvBias | kNoWindow, kQwen2Vl},
    {"qwen2_vl", "Qwen2VLForConditionalGeneration", kQkvBias | kNoWindow, kQwen2Vl},
    {"qwen2_5_vl_text", "", kQkvBias | kNoWindow, kQwen2Vl},
    {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", kQkvBias | kNoWindow, kQwen2Vl},
    {"qwen2_5_omni_text", "", kQkvBias | kNoWindow, kQwen2Vl},
    {"mimo", "MiMoForCausalLM", kQkvBias | kNoWindow, kQwen2},
    {"qwen3", "Qwen3ForCausalLM", kQkNorm | kNoWindow, kQwen3},
    {"qwen3_vl_text", "", kQkNorm | kNoWindow, kQwen3},
    {"gemma", "GemmaForCausalLM", kScaledEmbedding, kGemma},
    {"gemma2", "Gemma2ForCausalLM", kPostNorms | kScaledEmbedding, kGemma2},
    {"gemma3_text", "Gemma3ForCausalLM", kQkNorm | kPostNorms | kScaledEmbedding, kGemma3},
    {"phi3", "Phi3ForCausalLM"},
    {"phi3_v", "Phi3VForCausalLM"},
    {"olmo2", "Olmo2ForCausalLM", kQkNormAll | kPostNorms | kNoPreNorms},
    {"olmo3", "Olmo3ForCausalLM", kQkNormAll | kPostNorms | kNoPreNorms,
     R"({"sliding_window": 4096, "sliding_window_pattern": 4})"},
    {"glm", "GlmForCausalLM", kOnlyQkvBias, R"({"num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"},
    {"glm4", "Glm4ForCausalLM", kOnlyQkvBias | kPostNorms,
     R"({"num_key_value_heads": 2, "head_dim": 128, "attention_bias": true})"},
    {"glm4v_text", "", kQkvBias | kOnlyQkvBias | kPostNorms, R"({"num_key_value_heads": 2})"},
    {"chatglm", "ChatGLMModel", 0, "", Experts::none, read_chatglm},
    {"baichuan", "BaichuanForCausalLM", 0, "", Experts::none, read_baichuan},
    {"internlm", "InternLMForCausalLM", 0, "", Experts::none, read_internlm},
    {"internlm2", "InternLM2ForCausalLM", 0, "", Experts::none, read_internlm},
    {"internlm3", "InternLM3ForCausalLM", 0, "", Experts::none, read_internlm3},
    {"minicpm", "MiniCPMForCausalLM", 0, R"({"tie_word_embeddings": true})"},
    {"granite", "GraniteForCausalLM"},
    {"smollm3", "SmolLM3ForCausalLM", 0, R"({"num_key_value_heads": 4, "tie_word_embeddings": true})"},
    {"seed_oss", "SeedOssForCausalLM", kOnlyQkvBias,
     R"({"num_key_value_heads": 8, "head_dim": 128, "attention_bias": true})", Experts::none, read_seed},
    {"exaone4", "Exaone4ForCausalLM", kQkNorm | kPostNorms | kNoPreNorms, R"({"sliding_window": 4096})"},
    {"arcee", "ArceeForCausalLM", kUngated},
    {"ernie4_5", "Ernie4_5ForCausalLM", 0,
     R"({"num_key_value_heads": 2, "head_dim": 128, "tie_word_embeddings": true})", Experts::none, read_ernie_bias},
};

}  // namespace

std::span<const Family> dense_families() { return kDenseFamilies; }

}  // namespace orrery
