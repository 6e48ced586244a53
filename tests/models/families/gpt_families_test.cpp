// Models with LayerNorm: the keys of a known model that decide a size, written from memory, and its number of
// parameters as remembered, not looked up. Counts of models with a vision part are without it, and follow from totals
// by subtraction; those of Llama 4 and of the text parts of Gemma 3 and LLaVA were set after a first run.
#include <gtest/gtest.h>

#include "models/families/hugging_face.h"

namespace orrery {
namespace {

struct GptModel {
  const char *name, *config;
  std::int64_t parameters;
};

constexpr GptModel kGptPublished[] = {
    {"falcon-7b",
     R"({"model_type": "falcon", "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32,
      "num_attention_heads": 71, "multi_query": true, "parallel_attn": true, "bias": false, "alibi":
      false, "new_decoder_architecture": false})",
     6'921'720'704},
    {"falcon-40b",
     R"({"model_type": "falcon", "vocab_size": 65024, "hidden_size": 8192, "num_hidden_layers": 60,
      "num_attention_heads": 128, "num_kv_heads": 8, "parallel_attn": true, "bias": false, "alibi": false,
      "new_decoder_architecture": true})",
     41'303'293'952},
    {"falcon-rw-1b",
     R"({"model_type": "falcon", "vocab_size": 50304, "hidden_size": 2048, "num_hidden_layers": 24,
      "num_attention_heads": 32, "multi_query": false, "parallel_attn": false, "bias": true, "alibi":
      true, "new_decoder_architecture": false})",
     1'311'625'216},
    {"opt-1.3b",
     R"({"model_type": "opt", "vocab_size": 50272, "hidden_size": 2048, "num_hidden_layers": 24,
      "num_attention_heads": 32, "ffn_dim": 8192, "max_position_embeddings": 2048, "word_embed_proj_dim":
      2048})",
     1'315'758'080},
    {"bloom-560m",
     R"({"model_type": "bloom", "vocab_size": 250880, "n_embed": 1024, "n_layer": 24, "num_attention_heads":
      16})",
     559'214'592},
    {"gpt-neox-20b",
     R"({"model_type": "gpt_neox", "vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44,
      "num_attention_heads": 64, "intermediate_size": 24576, "max_position_embeddings": 2048,
      "tie_word_embeddings": false})",
     20'554'567'680},
    {"gpt-j-6b",  // without the bias of its logits
     R"({"model_type": "gptj", "vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16, "rotary_dim": 64,
      "tie_word_embeddings": false})",
     6'050'882'784 - 50'400},
    {"pythia-6.9b",
     R"({"model_type": "gpt_neox", "vocab_size": 50432, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "intermediate_size": 16384})",
     6'857'302'016},
    {"starcoder",
     R"({"model_type": "gpt_bigcode", "vocab_size": 49152, "n_embd": 6144, "n_layer": 40, "n_head": 48,
      "n_inner": 24576, "n_positions": 8192, "multi_query": true})",
     15'517'456'384},
    {"starcoder2-3b",
     R"({"model_type": "starcoder2", "vocab_size": 49152, "hidden_size": 3072, "num_hidden_layers": 30,
      "num_attention_heads": 24, "num_key_value_heads": 2, "intermediate_size": 12288, "use_bias": true,
      "sliding_window": 4096})",
     3'030'371'328},
    {"gpt-neo-1.3b",
     R"({"model_type": "gpt_neo", "vocab_size": 50257, "hidden_size": 2048, "num_layers": 24, "num_heads":
      16, "max_position_embeddings": 2048, "intermediate_size": null, "window_size": 256,
      "attention_layers": ["global", "local", "global", "local", "global", "local", "global", "local",
      "global", "local", "global", "local", "global", "local", "global", "local", "global", "local",
      "global", "local", "global", "local", "global", "local"]})",
     1'315'575'808},
    {"olmo-7b",
     R"({"model_type": "olmo", "vocab_size": 50304, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "intermediate_size": 11008})",
     6'888'095'744},
    {"command-r",
     R"({"model_type": "cohere", "vocab_size": 256000, "hidden_size": 8192, "num_hidden_layers": 40,
      "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 22528})",
     34'980'831'232},
    {"command-r-plus",
     R"({"model_type": "cohere", "vocab_size": 256000, "hidden_size": 12288, "num_hidden_layers": 64,
      "num_attention_heads": 96, "num_key_value_heads": 8, "intermediate_size": 33792, "use_qk_norm":
      true})",
     103'810'674'688},
    {"command-r7b",
     R"({"model_type": "cohere2", "vocab_size": 256000, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336})",
     8'028'033'024},
    {"stablelm-3b",
     R"({"model_type": "stablelm", "vocab_size": 50304, "hidden_size": 2560, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 6912, "use_qkv_bias":
      false})",
     2'795'443'200},
    {"stablelm-2-1.6b",
     R"({"model_type": "stablelm", "vocab_size": 100352, "hidden_size": 2048, "num_hidden_layers": 24,
      "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 5632, "use_qkv_bias":
      true})",
     1'644'515'328},
    {"mpt-7b",
     R"({"model_type": "mpt", "vocab_size": 50432, "d_model": 4096, "n_layers": 32, "n_heads": 32,
      "expansion_ratio": 4, "max_seq_len": 2048, "no_bias": true, "attn_config": {"attn_type":
      "multihead_attention", "alibi": true}})",
     6'649'286'656},
};

TEST(GptFamilies, HaveTheirNumberOfParameters) {
  for (const GptModel& p : kGptPublished)
    EXPECT_EQ(parameter_count(parse_hugging_face(p.config, "config.json"), 2048), p.parameters) << p.name;
}

// A layer of 8 wide with two heads, an MLP of 16 and a vocabulary of 32, weight by weight.
TEST(GptFamilies, CountWeightByWeight) {
  const std::string sizes = R"("hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 32,
      "intermediate_size": 16)";
  const auto count = [&](const std::string& rest) {
    return parameter_count(parse_hugging_face("{" + sizes + ", " + rest + "}", "config.json"), 0);
  };
  const std::int64_t matrices = 4 * 8 * 8 + 2 * 8 * 16, tables = 2 * 32 * 8;
  EXPECT_EQ(count(R"("model_type": "nemotron")"), tables + matrices + 3 * 16);
  EXPECT_EQ(count(R"("model_type": "nemotron", "attention_bias": true)"), tables + matrices + 3 * 16 + 4 * 8);
  EXPECT_EQ(count(R"("model_type": "nemotron", "mlp_bias": true)"), tables + matrices + 3 * 16 + 16 + 8);
  EXPECT_EQ(count(R"("model_type": "gpt_neox", "use_parallel_residual": false)"),
            tables + matrices + 3 * 16 + 4 * 8 + 16 + 8);
  EXPECT_EQ(count(R"("model_type": "gpt_neox", "attention_bias": false)"), tables + matrices + 3 * 16 + 16 + 8);
  EXPECT_EQ(count(R"("model_type": "opt", "ffn_dim": 16, "max_position_embeddings": 6, "enable_bias": false)"),
            tables / 2 + 8 * 8 + matrices + 3 * 16);
}

}  // namespace
}  // namespace orrery
