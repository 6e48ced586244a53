// This file has the table of model families with LayerNorm: descendants of GPT-2, and others with the same norm.
// Properties and defaults are those of the classes in transformers (configuration_*.py and modeling_*.py of each
// model_type). Not every default was checked against the source: if a model's parameter count differs from the one on
// the model hub, one of the defaults is wrong.
#include "models/families/family.h"

namespace orrery {
namespace {

using namespace habit;

// StarCoder 2: every linear layer has a bias unless the key use_bias is false.
void read_use_bias(const Config& config, Model& m) { m.bias = config.flag({"use_bias"}, true); }

// GPT-BigCode, the family of StarCoder: all query heads share one key/value head unless multi_query is false.
void read_bigcode(const Config& config, Model& m) {
  if (config.flag({"multi_query"}, true)) m.kv_heads = 1;
}

// GPT-NeoX: the key attention_bias says whether attention has biases; attention and MLP run in parallel unless
// use_parallel_residual is false.
void read_neox(const Config& config, Model& m) {
  m.mlp_bias = true;
  m.qkv_bias = m.attention_output_bias = config.flag({"attention_bias"}, true);
  m.parallel_block = m.parallel_norms = config.flag({"use_parallel_residual"}, true);
}

// OPT: the table of learned positions has two rows more than the sequence has tokens (OPTLearnedPositionalEmbedding's
// offset).
void read_opt(const Config& config, Model& m) {
  constexpr std::int64_t kOffset = 2;
  m.trained_positions = m.max_positions;
  m.max_positions += kOffset;
  m.bias = config.flag({"enable_bias"}, true);
  m.norm_weight = m.norm_bias = config.flag({"layer_norm_elementwise_affine"}, true);
  if (!config.flag({"do_layer_norm_before"}, true))
    config.fail("do_layer_norm_before", "false: norms of the residual stream itself are not built; choose another OPT");
  if (config.count({"word_embed_proj_dim"}, m.hidden) != m.hidden)
    config.fail("word_embed_proj_dim",
                "embeddings of another width than hidden_size are not built; choose another OPT");
}

void read_mpt(const Config& config, Model& m) {
  const Config attention = config.part("attn_config");
  const std::string type = attention.text({"attn_type"});
  if (type == "multiquery_attention") m.kv_heads = 1;
  if (type == "grouped_query_attention") m.kv_heads = attention.count({"kv_n_heads"});
  const double ratio = config.real({"expansion_ratio"}, 4);
  m.feed_forward = static_cast<std::int64_t>(ratio * static_cast<double>(m.hidden));
  m.bias = !config.flag({"no_bias"}, true);
  m.norm_bias = m.bias;
  m.qk_norm_all = attention.flag({"qk_ln"}, false);
  const bool alibi = attention.flag({"alibi"}, false), rope = attention.flag({"rope"}, false);
  const bool table = config.flag({"learned_pos_emb"}, true) && !alibi && !rope;
  m.positions = alibi ? Positions::alibi : rope ? Positions::rope : table ? Positions::learned : Positions::none;
  if (table) m.max_positions = config.count({"max_seq_len"});
}

// Falcon: the numbers of key/value heads and of norms, and the biases, depend on the generation of Falcon's
// architecture (new_decoder_architecture).
void read_falcon(const Config& config, Model& m) {
  const bool grouped = config.flag({"new_decoder_architecture"}, false);
  const bool one = !grouped && config.flag({"multi_query"}, true);
  m.kv_heads = one ? 1 : config.count({"num_kv_heads", "n_head_kv"}, m.heads);
  m.bias = config.flag({"bias"}, false);
  m.parallel_block = grouped || config.flag({"parallel_attn"}, true);
  m.parallel_norms = grouped && config.count({"num_ln_in_parallel_attn"}, 2) == 2;
  if (config.flag({"alibi"}, false)) m.positions = Positions::alibi;
}

// Cohere's norms of queries and keys have separate weights for each head.
void read_cohere(const Config& config, Model& m) {
  m.qk_norm_all = config.flag({"use_qk_norm"}, false);
  if (m.qk_norm_all)
    m.remarks.emplace_back("qk_norm: norms of each head by weights of its own are planned as one norm of all heads");
}

void read_stablelm(const Config& config, Model& m) {
  m.qkv_bias = config.flag({"use_qkv_bias"}, false);
  m.parallel_block = config.flag({"use_parallel_residual"}, false);
  if (config.flag({"qk_layernorm"}, false))
    config.fail("qk_layernorm", "true: norms of each head by weights of its own are not built; choose another model");
}

// GPT-Neo: attention's output and the MLP have biases, q, k and v never have; layers that attention_layers lists as
// local attend within a window.
void read_gpt_neo(const Config& config, Model& m) {
  m.attention_output_bias = m.mlp_bias = true;
  const auto* kinds = config.find({"attention_layers"});
  if (kinds == nullptr || !kinds->is_array() || static_cast<std::int64_t>(kinds->size()) != m.layers)
    config.fail("attention_layers", "a list with a kind for each layer is needed");
  SlidingWindow window = {.window = config.count({"window_size"}, 256)};
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const auto& kind = (*kinds)[static_cast<std::size_t>(i)];
    if (kind != "global" && kind != "local") config.fail("attention_layers", "kinds are global and local");
    if (kind == "global") window.full_layers.push_back(i);
  }
  if (static_cast<std::int64_t>(window.full_layers.size()) < m.layers) m.sliding_window = window;
}

// GPT-J: attention has no biases, the MLP has; both read the hidden states after one norm.
void read_gptj(const Config&, Model& m) {
  m.mlp_bias = true;
  m.parallel_block = true;
  m.remarks.emplace_back("the bias of the logits (vocab_size elements) is left out");
}

constexpr std::uint32_t kGpt = kLayerNorm | kUngated;
constexpr std::string_view kTiedDefault = R"({"tie_word_embeddings": true})";

constexpr Family kGptFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", kGpt | kBias | kLearned | kFourfold,
     R"({"resid_pdrop": 0.1, "tie_word_embeddings": true})"},
    {"gpt_bigcode", "GPTBigCodeForCausalLM", kGpt | kBias | kLearned | kFourfold,
     R"({"resid_pdrop": 0.1, "tie_word_embeddings": true})", Experts::none, read_bigcode},
    {"gpt_neo", "GPTNeoForCausalLM", kGpt | kLearned | kFourfold, kTiedDefault, Experts::none, read_gpt_neo},
    {"gpt_neox", "GPTNeoXForCausalLM", kGpt, "", Experts::none, read_neox},
    {"gptj", "GPTJForCausalLM", kGpt | kFourfold, R"({"rotary_dim": 64})", Experts::none, read_gptj},
    {"opt", "OPTForCausalLM", kGpt | kLearned, R"({"dropout": 0.1, "tie_word_embeddings": true})", Experts::none,
     read_opt},
    {"bloom", "BloomForCausalLM", kGpt | kBias | kAlibi | kFourfold, kTiedDefault, Experts::none,
     [](const Config&, Model& m) { m.embedding_norm = true; }},
    {"mpt", "MPTForCausalLM", kGpt | kFourfold, kTiedDefault, Experts::none, read_mpt},
    {"falcon", "FalconForCausalLM", kGpt | kFourfold, kTiedDefault, Experts::none, read_falcon},
    {"RefinedWeb", "RWForCausalLM", kGpt | kFourfold,
     R"({"tie_word_embeddings": true, "new_decoder_architecture": true})", Experts::none, read_falcon},
    {"RefinedWebModel", "", kGpt | kFourfold, kTiedDefault, Experts::none, read_falcon},
    {"starcoder2", "Starcoder2ForCausalLM", kGpt, R"({"num_key_value_heads": 2, "tie_word_embeddings": true})",
     Experts::none, read_use_bias},
    {"cohere", "CohereForCausalLM", kLayerNorm | kNoNormBias | kParallel, kTiedDefault, Experts::none, read_cohere},
    {"cohere2", "Cohere2ForCausalLM", kLayerNorm | kNoNormBias | kParallel,
     R"({"tie_word_embeddings": true, "sliding_window": 4096, "sliding_window_pattern": 4})"},
    {"nemotron", "NemotronForCausalLM", kGpt},
    {"stablelm", "StableLmForCausalLM", kLayerNorm, R"({"num_key_value_heads": 32})", Experts::none, read_stablelm},
    {"olmo", "OlmoForCausalLM", kLayerNorm, "", Experts::none,
     [](const Config&, Model& m) { m.norm_weight = m.norm_bias = false; }},
    {"orion", "OrionForCausalLM", kLayerNorm},
};

}  // namespace

std::span<const Family> gpt_families() { return kGptFamilies; }

}  // namespace orrery
