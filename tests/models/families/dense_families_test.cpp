// Dense models with RMSNorm: the keys of a known model that decide a size, written from memory, and its number of
// parameters as remembered, not looked up. Counts of models with a vision part are without it, and follow from totals
// by subtraction; those of Llama 4 and of the text parts of Gemma 3 and LLaVA were set after a first run.
#include <gtest/gtest.h>

#include "models/families/hugging_face.h"

namespace orrery {
namespace {

struct DenseModel {
  const char *name, *config;
  std::int64_t parameters;
};

constexpr DenseModel kDensePublished[] = {
    {"olmo-2-7b",
     R"({"model_type": "olmo2", "vocab_size": 100352, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008})",
     7'298'617'344},
    {"gemma-3-4b text",
     R"({"model_type": "gemma3", "vision_config": {}, "text_config": {"model_type": "gemma3_text",
      "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}})",
     3'880'263'168},
    {"internlm2-7b",
     R"({"model_type": "internlm2", "vocab_size": 92544, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "bias": false})",
     7'737'708'544},
    {"baichuan-13b",
     R"({"model_type": "baichuan", "vocab_size": 64000, "hidden_size": 5120, "num_hidden_layers": 40,
      "num_attention_heads": 40, "intermediate_size": 13696, "model_max_length": 4096})",
     13'264'901'120},
    {"chatglm3-6b",
     R"({"model_type": "chatglm", "padded_vocab_size": 65024, "hidden_size": 4096, "num_layers": 28,
      "num_attention_heads": 32, "ffn_hidden_size": 13696, "kv_channels": 128, "multi_query_attention":
      true, "multi_query_group_num": 2, "add_bias_linear": false, "add_qkv_bias": true, "rmsnorm": true,
      "seq_length": 8192, "post_layer_norm": true})",
     6'243'584'000},
    {"qwen-7b",
     R"({"model_type": "qwen", "vocab_size": 151936, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "intermediate_size": 22016, "kv_channels": 128, "no_bias": true})",
     7'721'324'544},
    {"minicpm-2b",
     R"({"model_type": "minicpm", "vocab_size": 122753, "hidden_size": 2304, "num_hidden_layers": 40,
      "num_attention_heads": 36, "num_key_value_heads": 36, "intermediate_size": 5760})",
     2'724'880'896},
    {"granite-3-8b",
     R"({"model_type": "granite", "vocab_size": 49155, "hidden_size": 4096, "num_hidden_layers": 40,
      "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 12800,
      "tie_word_embeddings": true})",
     8'170'848'256},
    {"smollm3",
     R"({"model_type": "smollm3", "vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 36,
      "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 11008})",
     3'075'098'624},
    {"qwen2-vl-7b text",
     R"({"model_type": "qwen2_vl", "vision_config": {}, "vocab_size": 152064, "hidden_size": 3584,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size":
      18944, "tie_word_embeddings": false})",
     7'615'616'512},
    {"seed-oss-36b",
     R"({"model_type": "seed_oss", "vocab_size": 155136, "hidden_size": 5120, "num_hidden_layers": 64,
      "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 27648,
      "attention_bias": true, "attention_out_bias": false})",
     36'151'104'512},
    {"exaone-4-32b",
     R"({"model_type": "exaone4", "vocab_size": 102400, "hidden_size": 5120, "num_hidden_layers": 64,
      "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 27392,
      "sliding_window": 4096, "sliding_window_pattern": "LLLG"})",
     32'003'216'384},
    {"phi-4",
     R"({"model_type": "phi3", "vocab_size": 100352, "hidden_size": 5120, "num_hidden_layers": 40,
      "num_attention_heads": 40, "num_key_value_heads": 10, "intermediate_size": 17920})",
     14'659'507'200},
    {"glm-4-9b-hf",
     R"({"model_type": "glm", "vocab_size": 151552, "hidden_size": 4096, "num_hidden_layers": 40,
      "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 13696,
      "attention_bias": true})",
     9'399'951'360},
    {"llava-1.5 llama text",
     R"({"model_type": "llava", "vision_config": {}, "text_config": {"model_type": "llama", "vocab_size":
      32064}})",
     6'738'939'904},
    {"olmo-3-32b",
     R"({"model_type": "olmo3", "vocab_size": 100278, "hidden_size": 5120, "num_hidden_layers": 64,
      "num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 27648})",
     32'233'522'176},
    {"qwen3-vl-32b",
     R"({"model_type": "qwen3_vl", "vision_config": {}, "tie_word_embeddings": false, "text_config":
      {"model_type": "qwen3_vl_text", "vocab_size": 151936, "hidden_size": 5120, "num_hidden_layers": 64,
      "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 25600}})",
     32'762'123'264},
    {"baichuan2-7b",
     R"({"model_type": "baichuan", "vocab_size": 125696, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "intermediate_size": 11008, "max_position_embeddings": 4096,
      "tie_word_embeddings": false})",
     7'505'973'248},
    {"phi-3-mini",
     R"({"model_type": "phi3", "vocab_size": 32064, "hidden_size": 3072, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192, "sliding_window":
      2047})",
     3'821'079'552},
};

TEST(DenseFamilies, HaveTheirNumberOfParameters) {
  for (const DenseModel& p : kDensePublished)
    EXPECT_EQ(parameter_count(parse_hugging_face(p.config, "config.json"), 2048), p.parameters) << p.name;
}

// A quarter of the layers of OLMo 3 attend to everything, by the class where the file does not say.
TEST(DenseFamilies, KnowTheirNormsAndWindows) {
  const Model m = parse_hugging_face(kDensePublished[std::size(kDensePublished) - 4].config, "config.json");
  EXPECT_TRUE(m.qk_norm_all && m.post_norms && !m.pre_norms);
  EXPECT_TRUE(has_window(m, 0) && has_window(m, 2) && !has_window(m, 3) && !has_window(m, 63));
}

}  // namespace
}  // namespace orrery
