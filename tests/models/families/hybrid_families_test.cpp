// Models of several kinds of layers. Counts are those that model cards and papers state, or sums of the matrices that
// the models' own code lists, written out here.
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/families/hugging_face.h"

namespace orrery {
namespace {

constexpr const char* kQwen3Next =
    R"({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "moe_intermediate_size": 512,
        "num_experts": 512, "num_experts_per_tok": 10, "shared_expert_intermediate_size": 512, "decoder_sparse_step": 1,
        "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
        "tie_word_embeddings": false, "vocab_size": 151936, "partial_rotary_factor": 0.25})";

std::string nemotron(const std::string& pattern, const std::string& more = "") {
  return R"({"model_type": "nemotron_h", "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8,
             "attention_head_dim": 128, "intermediate_size": 32768, "mamba_num_heads": 256, "mamba_head_dim": 64,
             "n_groups": 8, "ssm_state_size": 256, "conv_kernel": 4, "chunk_size": 128, "use_conv_bias": true,
             "mlp_hidden_act": "relu2", "tie_word_embeddings": false, "vocab_size": 131072, "time_step_limit": [0.0,
             Infinity], "num_hidden_layers": )" +
         std::to_string(pattern.size()) + R"(, "hybrid_override_pattern": ")" + pattern + "\"" + more + "}";
}

std::int64_t count(const std::string& config) { return parameter_count(parse_hugging_face(config, "config.json"), 1); }

TEST(HybridFamilies, Qwen3NextHasThreeRecurrencesForEachAttention) {
  const Model m = parse_hugging_face(kQwen3Next, "config.json");
  EXPECT_EQ(parameter_count(m, 1), 79'674'391'296);  // "80B", 81.3B with its module of multi-token prediction
  EXPECT_EQ(m.layer_kinds.size(), 4U);
  for (std::int64_t i = 0; i < m.layers; ++i)
    EXPECT_EQ(layer_kind(m, i).mixer, (i + 1) % 4 == 0 ? Mixer::attention : Mixer::recurrence) << i;
  EXPECT_TRUE(m.attention_gate && m.recurrence && m.moe->shared_gate);
  EXPECT_EQ(m.recurrence->heads, 32);
}

// Nemotron-H 56B (arXiv 2504.03624, table 1): 54 layers of Mamba-2, 54 of an MLP, 10 of attention.
TEST(HybridFamilies, NemotronHHasLayersOfOnePartEach) {
  std::string pattern = "M-M-M-M*-";
  for (int i = 0; i < 9; ++i) pattern += "M-M-M-M-M*-";
  pattern += "M-M-M-M-M-";
  ASSERT_EQ(pattern.size(), 118U);
  const Model m = parse_hugging_face(nemotron(pattern), "config.json");
  std::map<LayerKind, int> kinds;
  for (std::int64_t i = 0; i < m.layers; ++i) ++kinds[layer_kind(m, i)];
  EXPECT_EQ((kinds[{Mixer::recurrence, false}]), 54);
  EXPECT_EQ((kinds[{Mixer::none, true}]), 54);
  EXPECT_EQ((kinds[{Mixer::attention, false}]), 10);
  constexpr std::int64_t kHidden = 8192, kInner = 256 * 64, kGroups = 2 * 8 * 256;
  constexpr std::int64_t kMamba =
      kHidden * (2 * kInner + kGroups + 256) + (kInner + kGroups) * 5 + 3 * 256 + kInner + kInner * kHidden;
  constexpr std::int64_t kAttention = kHidden * (64 + 16) * 128 + 64 * 128 * kHidden;
  EXPECT_EQ(parameter_count(m, 1),
            54 * kMamba + 54 * 2 * kHidden * 32768 + 10 * kAttention + 118 * kHidden + kHidden + 2 * 131072 * kHidden);
  EXPECT_EQ(m.positions, Positions::none);
}

TEST(HybridFamilies, NemotronHMayHaveExperts) {
  const std::string experts =
      R"(, "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
         "moe_shared_expert_intermediate_size": 3712)";
  const Model m = parse_hugging_face(nemotron("MEM*E-", experts), "config.json");
  EXPECT_FALSE(has_experts(m, 0));
  EXPECT_TRUE(has_experts(m, 1) && has_experts(m, 4));
  EXPECT_FALSE(has_experts(m, 5));
  EXPECT_EQ(experts_before(m, 5), 2);
  EXPECT_EQ(m.moe->shared_feed_forward, 3712);
}

// DeepSeek-V3 (671,026,419,200 parameters) and an index in each of its 61 layers: 64 heads of 128 from 1,536 columns of
// compressed queries, one key of 128 with a LayerNorm, and 64 weights from the hidden states.
TEST(HybridFamilies, DeepSeekV32HasAnIndexInEveryLayer) {
  Model m = find_model("deepseek-v3");
  const std::int64_t dense = parameter_count(m, 1);
  m.indexer = {.heads = 64, .head_dim = 128, .top_k = 2048};
  EXPECT_EQ(parameter_count(m, 1) - dense, 61 * (1536 * 64 * 128 + 7168 * 128 + 2 * 128 + 7168 * 64));
  const std::string config =
      R"({"model_type": "deepseek_v32", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
          "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
          "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
          "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
          "n_group": 8, "topk_group": 4, "vocab_size": 129280, "index_n_heads": 64, "index_head_dim": 128,
          "index_topk": 2048})";
  EXPECT_EQ(count(config), parameter_count(m, 1));
}

TEST(HybridFamilies, RefusesWhatIsNotSoBuilt) {
  const auto refusal = [](const std::string& config) {
    try {
      parse_hugging_face(config, "config.json");
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_NE(refusal(nemotron("M*", R"(, "mamba_proj_bias": true)")).find("mamba_proj_bias: true: biases"),
            std::string::npos);
  EXPECT_NE(refusal(nemotron("M*", R"(, "moe_latent_size": 1024)")).find("moe_latent_size: experts"),
            std::string::npos);
  EXPECT_NE(refusal(nemotron("M?")).find("kinds are M (mamba)"), std::string::npos);
}

}  // namespace
}  // namespace orrery
