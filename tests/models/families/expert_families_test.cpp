// Models with experts: the keys of a known model that decide a size, written from memory, and its number of parameters
// as remembered, not looked up. Counts of models with a vision part are without it, and follow from totals by
// subtraction; those of Llama 4 and of the text parts of Gemma 3 and LLaVA were set after a first run.
#include <gtest/gtest.h>

#include "models/families/hugging_face.h"

namespace orrery {
namespace {

struct ExpertModel {
  const char *name, *config;
  std::int64_t parameters;
};

constexpr ExpertModel kExpertPublished[] = {
    {"olmoe",
     R"({"model_type": "olmoe", "vocab_size": 50304, "hidden_size": 2048, "num_hidden_layers": 16,
      "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 1024, "num_experts": 64,
      "num_experts_per_tok": 8})",
     6'919'161'856},
    {"gpt-oss-20b",
     R"({"model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "num_hidden_layers": 24,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
      "num_local_experts": 32, "num_experts_per_tok": 4, "attention_bias": true})",
     20'914'757'184},
    {"dbrx",
     R"({"model_type": "dbrx", "vocab_size": 100352, "d_model": 6144, "n_layers": 40, "n_heads": 48,
      "max_seq_len": 32768, "attn_config": {"kv_n_heads": 8}, "ffn_config": {"ffn_hidden_size": 10752,
      "moe_num_experts": 16, "moe_top_k": 4}, "tie_word_embeddings": false})",
     131'596'523'520},
    {"llama-4-scout text",
     R"({"model_type": "llama4", "vision_config": {}, "text_config": {"model_type": "llama4_text",
      "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers":
      48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048,
      "num_local_experts": 16, "interleave_moe_layer_step": 1}})",
     107'769'861'120},
    {"llama-4-maverick text",
     R"({"model_type": "llama4", "vision_config": {}, "text_config": {"model_type": "llama4_text",
      "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_hidden_layers":
      48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 202048,
      "num_local_experts": 128, "interleave_moe_layer_step": 2}})",
     400'711'848'960},
    {"deepseek-moe-16b",
     R"({"model_type": "deepseek", "vocab_size": 102400, "hidden_size": 2048, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944,
      "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok":
      6, "first_k_dense_replace": 1, "moe_layer_freq": 1})",
     16'375'728'128},
    {"ernie-21b",
     R"({"model_type": "ernie4_5_moe", "vocab_size": 103424, "hidden_size": 2560, "num_hidden_layers": 28,
      "num_attention_heads": 20, "num_key_value_heads": 4, "intermediate_size": 12288, "moe_num_experts":
      64, "moe_k": 6, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2, "moe_layer_start_index":
      1})",
     21'825'437'888},
    {"minimax-m2",
     R"({"model_type": "minimax_m2", "vocab_size": 200064, "hidden_size": 3072, "num_hidden_layers": 62,
      "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 1536,
      "num_local_experts": 256, "num_experts_per_tok": 8, "use_qk_norm": true, "qk_norm_type":
      "per_layer", "use_routing_bias": true, "scoring_func": "sigmoid", "shared_intermediate_size": 0})",
     228'689'764'864},
    {"gpt-oss-120b",
     R"({"model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "num_hidden_layers": 36,
      "num_attention_heads": 64, "intermediate_size": 2880})",
     116'829'156'672},
};

TEST(ExpertFamilies, HaveTheirNumberOfParameters) {
  for (const ExpertModel& p : kExpertPublished)
    EXPECT_EQ(parameter_count(parse_hugging_face(p.config, "config.json"), 2048), p.parameters) << p.name;
}

TEST(ExpertFamilies, KnowTheirLayers) {
  const auto read = [](const std::string& rest) {
    return parse_hugging_face(R"({"hidden_size": 8, "num_hidden_layers": 6, "num_attention_heads": 2, "vocab_size": 32,
      "num_key_value_heads": 2, "intermediate_size": 16, "num_experts_per_tok": 1, )" +
                                  rest + "}",
                              "config.json");
  };
  const Model llama = read(R"("model_type": "llama4_text", "intermediate_size_mlp": 24, "num_local_experts": 4,
      "interleave_moe_layer_step": 2)");
  EXPECT_TRUE(!has_experts(llama, 0) && has_experts(llama, 1) && !has_experts(llama, 4) && has_experts(llama, 5));
  const Model qwen = read(R"("model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 8,
      "mlp_only_layers": [2, 5])");
  EXPECT_EQ(qwen.moe->layers, (std::vector<std::int64_t>{0, 1, 3, 4}));
  EXPECT_EQ(experts_before(qwen, 4), 3);
  const Model oss = read(R"("model_type": "gpt_oss", "num_local_experts": 4, "swiglu_limit": 7.0)");
  EXPECT_EQ(oss.activation_clamp, 7);
  EXPECT_TRUE(oss.attention_sinks && oss.moe->router_bias && has_mlp_bias(oss) && has_attention_output_bias(oss));
}

}  // namespace
}  // namespace orrery
