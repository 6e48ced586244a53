#include <algorithm>
#include <filesystem>

#include "models/base/input_file.h"
#include "models/base/names.h"
#include "models/families/hugging_face.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr Named<Positions> kPositions[] = {
    {"rope", Positions::rope}, {"learned", Positions::learned}, {"alibi", Positions::alibi}, {"none", Positions::none}};
constexpr Named<Norm> kNorms[] = {{"rmsnorm", Norm::rmsnorm}, {"layernorm", Norm::layernorm}};

constexpr SpecKey kModelKeys[] = {
    {"base", "built-in name (orrery list models), a Hugging Face config.json, or its folder; other keys change it",
     "llama-3.1-8b", "name or path"},
    {"name", "name in tables", "my-model", "", "the base's, or layers x hidden"},
    {"layers", "Transformer layers", "80"},
    {"hidden", "width of the hidden states", "8192"},
    {"heads", "attention heads", "64"},
    {"kv_heads", "heads of keys and values", "8"},
    {"head_dim", "width of a head", "128"},
    {"feed_forward", "width of the MLP", "28672", "", "required; with experts in all layers theirs"},
    {"gated", "MLP of three matrices (SwiGLU) instead of two (GeLU)", "false"},
    {"vocab", "tokens of the vocabulary", "128256"},
    {"tied_embeddings", "the output shares the embedding's matrix", "true"},
    {"positions", "position encoding", "learned", "rope | learned | alibi | none"},
    {"max_positions", "rows of a learned position table; 0: the sequence", "2048"},
    {"norm", "normalization", "layernorm", "rmsnorm | layernorm"},
    {"bias", "a bias on every linear layer", "true"},
    {"qkv_bias", "a bias on queries, keys and values", "true"},
    {"attention_output_bias", "a bias on attention's output", "true"},
    {"mlp_bias", "biases on the matrices of MLP and experts", "true"},
    {"qk_norm", "a norm of each head of queries and keys", "true"},
    {"qk_norm_all", "one norm of all queries and one of all keys of a token (OLMo 2)", "true"},
    {"attention_sinks", "a learned sink in the softmax of each head (gpt-oss)", "true"},
    {"pre_norms", "norms before attention and MLP; without them post_norms is needed", "true", "", "true"},
    {"post_norms", "norms behind attention and MLP (Gemma 2)", "true"},
    {"dropout", "dropout probability", "0.1", "", "0, or the stack's"},
    {"parallel_block", "attention and MLP side by side (PaLM)", "true"},
    {"parallel_norms", "a norm for each of the two of a parallel_block (GPT-NeoX)", "false"},
    {"embedding_norm", "a norm of the embeddings (BLOOM)", "true"},
    {"norm_weight", "norms multiply by weights", "false", "", "true"},
    {"norm_bias", "layernorm adds a bias", "false", "", "true"},
    {"sliding_window", "attention within a window", "4096"},
    {"moe", "mixture of experts", "{experts: 8, top_k: 2, feed_forward: 14336}"},
    {"mla", "multi-head latent attention (DeepSeek-V2)",
     "{q_lora_rank: 1536, kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128}"},
    {"indexer", "an index chooses the tokens that latent attention attends to (DeepSeek-V3.2)",
     "{heads: 64, head_dim: 128, top_k: 2048}"},
    {"compressed_attention", "attention to a window and to compressed keys, of layers of such kinds (DeepSeek-V4)",
     "{q_lora_rank: 1024, output_groups: 8, output_rank: 1024}"},
    {"hyper_connections", "several residual streams, which weights of every token mix (DeepSeek-V4)", "4"},
    {"attention_gate", "attention's output is multiplied by the sigmoid of a projection (Qwen3-Next)", "true"},
    {"layer_kinds", "kinds of the layers, repeated from the first layer on", "[recurrence, recurrence, attention]",
     "list of attention | recurrence | attention_alone | recurrence_alone | feed_forward | windowed | "
     "compressed_sparse | heavily_compressed",
     "attention"},
    {"recurrence", "linear attention or state space of layers of that kind",
     "{rule: gated_delta, heads: 32, groups: 16, key_dim: 128, value_dim: 128}"},
    {"vision", "vision encoder; it runs if samples have images (sequence.images)",
     "{layers: 27, hidden: 1152, heads: 16, feed_forward: 4304, merge: 2}"},
    {"mtp_layers", "layers of multi-token prediction", "1"},
    {"lora", "low-rank adapters; all other weights are frozen", "{rank: 16, targets: [qkv, out, mlp]}"},
    {"frozen", "parts that do not train", "[embedding]",
     "one or a list of embedding | attention | mlp | moe | norm | head | vision | projector", "none"},
    {"scaled_embedding", "embeddings are multiplied by sqrt(hidden) (Gemma)", "true"},
    {"attention_softcap", "cap of attention scores; 0: none (Gemma 2)", "50"},
    {"logit_softcap", "cap of logits; 0: none", "30"},
    {"activation_clamp", "bound of SwiGLU's gates, and on both sides of what they gate; 0: none (gpt-oss)", "7"},
};
constexpr SpecKey kMoeKeys[] = {
    {"experts", "experts of a layer", "64", "", "required"},
    {"top_k", "experts of a token", "6", "", "required"},
    {"feed_forward", "width of one expert", "1408", "", "required"},
    {"shared_feed_forward", "width of all shared experts together", "2816"},
    {"first_layer", "first layer with experts", "1"},
    {"every", "layers from one with experts to the next", "2"},
    {"capacity_factor", "most tokens of an expert over the mean", "1.25", "", "no token is dropped"},
    {"pad_to_capacity", "experts compute as many rows as their capacity", "true"},
    {"imbalance", "tokens of the busiest expert rank over the mean, a Zipf exponent, or a file of counts", "1.2",
     "number | {zipf: S} | path", "1; in generated text a fitted Zipf exponent"},
    {"score", "scores that choose experts", "sigmoid"},
    {"aux_loss", "weight of the load-balancing loss; 0: none", "0.001"},
    {"dispatch", "all-to-all over all ranks at once, or within nodes first", "hierarchical"},
    {"shared_gate", "a sigmoid gate on the shared experts (Qwen1.5-MoE)", "true"},
    {"router_bias", "a bias on the router's product (gpt-oss)", "true"},
    {"router_fp32", "the router's product in fp32 (MiniMax-M2), in generated text", "true"},
    {"correction_bias", "a bias for each expert steers the choice (DeepSeek-V3)", "true"},
    {"hash_layers", "first layers whose experts a table names for each token (DeepSeek-V4)", "3"},
    {"expert_groups", "groups of experts, of which a token takes top_groups", "8"},
    {"top_groups", "groups that a token's experts lie in", "4"},
};
constexpr SpecKey kMlaKeys[] = {
    {"q_lora_rank", "width of compressed queries; 0: none", "1536"},
    {"kv_lora_rank", "width of compressed keys and values", "512", "", "required"},
    {"qk_nope_head_dim", "width of a head without positions", "128", "", "required"},
    {"qk_rope_head_dim", "width of a head with rotary positions", "64", "", "required"},
    {"v_head_dim", "width of a head of values", "128", "", "required"},
};
constexpr SpecKey kIndexerKeys[] = {
    {"heads", "heads of the index", "64", "", "required"},
    {"head_dim", "width of a head of the index", "128", "", "required"},
    {"top_k", "tokens that a token attends to", "2048", "", "required"},
};
constexpr SpecKey kCompressedKeys[] = {
    {"q_lora_rank", "width of compressed queries", "1024", "", "required"},
    {"rope_head_dim", "rotated columns of a head", "64"},
    {"window", "tokens that a token attends to in every layer", "128"},
    {"sparse_rate", "tokens of a key in compressed_sparse layers", "4"},
    {"heavy_rate", "tokens of a key in heavily_compressed layers", "128"},
    {"output_groups", "groups of heads that are projected by themselves", "8"},
    {"output_rank", "width of a group's projection", "1024", "", "required"},
};
constexpr SpecKey kHyperKeys[] = {
    {"streams", "residual streams", "4", "", "required"},
    {"iterations", "normalisations of a token's mixing matrix", "20"},
};
constexpr SpecKey kRecurrenceKeys[] = {
    {"rule", "rule by which the state is updated", "state_space"},
    {"heads", "heads of values, each with a state", "32", "", "required"},
    {"groups", "heads of queries and keys (Mamba: groups)", "16", "", "heads"},
    {"key_dim", "width of a key (Mamba: the state's size)", "128", "", "required"},
    {"value_dim", "width of a value (Mamba: of a head)", "128", "", "required"},
    {"taps", "tokens that the convolution before it sees", "4"},
    {"convolution_bias", "a bias of the convolution", "true"},
    {"chunk", "tokens that kernels compute at once", "128"},
};
constexpr SpecKey kWindowKeys[] = {
    {"window", "tokens that a token attends to", "4096", "", "required"},
    {"every", "every so manyth layer attends to all tokens; 1: none does", "2"},
};
constexpr SpecKey kImbalanceKeys[] = {
    {"zipf", "expert loads fall as rank to the power of minus this", "0.5"},
};
constexpr std::string_view kScores[] = {"softmax", "sigmoid"};
constexpr std::string_view kDispatches[] = {"flat", "hierarchical"};

// Returns the model that a spec starts from: a built-in name, a config.json, or a folder that contains one.
Model load_base(const SpecSection& section, const SpecNode& node) {
  std::string base;
  convert(section.reader(), node, section.name("base"), base);
  const bool file = base.find('/') != std::string::npos || base.ends_with(".json");
  if (!file) return find_model(base);
  std::filesystem::path path = beside(section.reader().path, base);
  if (std::filesystem::is_directory(path)) path /= "config.json";
  Model m = parse_hugging_face(read_input(path.string(), kMostSettings), path.string());
  if (m.name.empty())
    m.name = path.filename() == "config.json" ? path.parent_path().filename().string() : path.stem().string();
  return m;
}

// Reads moe.imbalance, which is a number, {zipf: s}, or the path of a file of token counts.
void take_imbalance(const SpecSection& section, Moe& moe, std::string_view otherwise) {
  const SpecNode* node = section.find("imbalance");
  if (node != nullptr && node->kind == SpecNode::Kind::map) {
    moe.zipf = 1;
    SpecSection(section.reader(), node, section.name("imbalance"), kImbalanceKeys).take("zipf", moe.zipf);
  } else if (node != nullptr && node->text.find_first_of("/.") != std::string::npos &&
             node->text.find_first_not_of("0123456789.eE+-") != std::string::npos) {
    moe.loads_file = beside(section.reader().path, node->text);
    section.record("imbalance", moe.loads_file, node, otherwise);
  } else {
    section.take("imbalance", moe.imbalance, otherwise);
    if (node != nullptr && moe.imbalance == 1) moe.zipf = 0;  // as stated, not as generated text would have it
  }
}

void read_moe(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.moe) return;
  Moe moe = m.moe.value_or(Moe{});
  const SpecSection section(reader, node, "model.moe", kMoeKeys);
  section.take("experts", moe.experts, otherwise);
  section.take("top_k", moe.top_k, otherwise);
  section.take("feed_forward", moe.feed_forward, otherwise);
  section.take("shared_feed_forward", moe.shared_feed_forward, otherwise);
  section.take("first_layer", moe.first_layer, otherwise);
  section.take("every", moe.every, otherwise);
  section.take("capacity_factor", moe.capacity_factor);
  section.take("pad_to_capacity", moe.pad_to_capacity, otherwise);
  take_imbalance(section, moe, otherwise);
  std::string score = moe.sigmoid_scores ? "sigmoid" : "softmax";
  section.take_word("score", score, kScores, otherwise);
  moe.sigmoid_scores = score == "sigmoid";
  section.take("aux_loss", moe.aux_loss, otherwise);
  std::string dispatch = moe.hierarchical_dispatch ? "hierarchical" : "flat";
  section.take_word("dispatch", dispatch, kDispatches, otherwise);
  moe.hierarchical_dispatch = dispatch == "hierarchical";
  section.take("shared_gate", moe.shared_gate, otherwise);
  section.take("router_bias", moe.router_bias, otherwise);
  section.take("router_fp32", moe.router_fp32, otherwise);
  section.take("correction_bias", moe.correction_bias, otherwise);
  section.take("hash_layers", moe.hash_layers, otherwise);
  section.take("expert_groups", moe.expert_groups, otherwise);
  section.take("top_groups", moe.top_groups, otherwise);
  m.moe = moe;
}

void read_mla(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.mla) return;
  Mla mla = m.mla.value_or(Mla{});
  const SpecSection section(reader, node, "model.mla", kMlaKeys);
  section.take("q_lora_rank", mla.q_lora_rank, otherwise);
  section.take("kv_lora_rank", mla.kv_lora_rank, otherwise);
  section.take("qk_nope_head_dim", mla.qk_nope_head_dim, otherwise);
  section.take("qk_rope_head_dim", mla.qk_rope_head_dim, otherwise);
  section.take("v_head_dim", mla.v_head_dim, otherwise);
  m.mla = mla;
}

void read_indexer(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.indexer) return;
  Indexer indexer = m.indexer.value_or(Indexer{});
  const SpecSection section(reader, node, "model.indexer", kIndexerKeys);
  section.take("heads", indexer.heads, otherwise);
  section.take("head_dim", indexer.head_dim, otherwise);
  section.take("top_k", indexer.top_k, otherwise);
  m.indexer = indexer;
}

void read_compressed(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.compressed_attention) return;
  CompressedAttention a = m.compressed_attention.value_or(CompressedAttention{});
  const SpecSection section(reader, node, "model.compressed_attention", kCompressedKeys);
  section.take("q_lora_rank", a.q_lora_rank, otherwise);
  section.take("rope_head_dim", a.rope_head_dim, otherwise);
  section.take("window", a.window, otherwise);
  section.take("sparse_rate", a.sparse_rate, otherwise);
  section.take("heavy_rate", a.heavy_rate, otherwise);
  section.take("output_groups", a.output_groups, otherwise);
  section.take("output_rank", a.output_rank, otherwise);
  m.compressed_attention = a;
}

void read_hyper_connections(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.hyper_connections) return;
  HyperConnections h = m.hyper_connections.value_or(HyperConnections{});
  const SpecSection section(reader, node, "model.hyper_connections", kHyperKeys, "streams");
  section.take("streams", h.streams, otherwise);
  section.take("iterations", h.iterations, otherwise);
  m.hyper_connections = h;
}

void read_recurrence(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.recurrence) return;
  Recurrence r = m.recurrence.value_or(Recurrence{});
  const SpecSection section(reader, node, "model.recurrence", kRecurrenceKeys);
  std::vector<std::string_view> words;
  for (const RecurrenceRow& row : kRecurrences) words.push_back(row.word);
  std::string rule(row_of(r.rule).word);
  section.take_word("rule", rule, words, otherwise);
  r.rule = static_cast<RecurrenceRule>(std::ranges::find(words, rule) - words.begin());
  section.take("heads", r.heads, otherwise);
  if (!m.recurrence) r.groups = r.heads;
  section.take("groups", r.groups, m.recurrence ? otherwise : "heads");
  section.take("key_dim", r.key_dim, otherwise);
  section.take("value_dim", r.value_dim, otherwise);
  section.take("taps", r.taps, otherwise);
  section.take("convolution_bias", r.convolution_bias, otherwise);
  section.take("chunk", r.chunk, otherwise);
  m.recurrence = r;
}

std::string_view word_of(const LayerKind& kind) {
  return std::ranges::find(kLayerKinds, kind, &LayerKindRow::kind)->word;
}

LayerKind find_layer_kind(std::string_view word) {
  std::vector<std::string_view> words;
  for (const LayerKindRow& row : kLayerKinds) {
    if (row.word == word) return row.kind;
    words.push_back(row.word);
  }
  throw Error(unknown_name("kind", word, words));
}

void read_kinds(const SpecSection& section, Model& m, std::string_view otherwise) {
  const SpecNode* node = section.find("layer_kinds");
  if (node != nullptr) {
    if (node->kind != SpecNode::Kind::list || node->items.empty())
      section.reader().fail(*node, "model.layer_kinds", "a list of kinds is needed, such as [recurrence, attention]");
    m.layer_kinds.clear();
    for (const SpecNode& item : node->items) {
      std::string word;
      convert(section.reader(), item, "model.layer_kinds", word);
      m.layer_kinds.push_back(section.located(item, "layer_kinds", [&] { return find_layer_kind(word); }));
    }
  }
  std::string text;
  for (const LayerKind& kind : m.layer_kinds) text += (text.empty() ? "" : ", ") + std::string(word_of(kind));
  section.record("layer_kinds", text.empty() ? "attention" : "[" + text + "]", node, otherwise);
}

void read_window(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.sliding_window) return;
  SlidingWindow window = m.sliding_window.value_or(SlidingWindow{});
  const SpecSection section(reader, node, "model.sliding_window", kWindowKeys, "window");
  section.take("window", window.window, otherwise);
  section.take("every", window.every, otherwise);
  m.sliding_window = window;
}

// Reads a size that has no default: it must be given unless the spec starts from another model.
void take_size(const SpecSection& section, std::string_view key, std::int64_t& value, bool based, const SpecNode& at,
               std::string_view otherwise) {
  if (!section.take(key, value, otherwise) && !based) section.reader().fail(at, section.name(key), "missing");
}

std::int64_t default_head_dim(const SpecSection& section, const Model& m, const SpecNode& at) {
  if (const SpecNode* mla = section.find("mla"); mla != nullptr) {
    return m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim;
  }
  if (m.heads < 1 || section.find("head_dim") != nullptr) return 0;
  if (m.hidden % m.heads != 0) {
    section.reader().fail(at, "model.heads",
                          fmt::format("{} does not divide hidden: {}; set head_dim", m.heads, m.hidden));
  }
  return m.hidden / m.heads;
}

void read_sizes(const SpecSection& section, Model& m, bool based, const SpecNode& at, std::string_view from) {
  take_size(section, "layers", m.layers, based, at, from);
  take_size(section, "hidden", m.hidden, based, at, from);
  take_size(section, "heads", m.heads, based, at, from);
  if (!based) m.kv_heads = m.heads;
  section.take("kv_heads", m.kv_heads, based ? from : "heads");
  if (!based) m.head_dim = default_head_dim(section, m, at);
  section.take("head_dim", m.head_dim, based ? from : "hidden / heads");
  if (!based && m.moe && m.moe->first_layer == 0 && m.moe->every == 1) m.feed_forward = m.moe->feed_forward;
  take_size(section, "feed_forward", m.feed_forward, based || m.feed_forward > 0, at, from);
  section.take("gated", m.gated, from);
  take_size(section, "vocab", m.vocab, based, at, from);
}

void read_switches(const SpecSection& section, Model& m, std::string_view from) {
  section.take("tied_embeddings", m.tied_embeddings, from);
  const auto positions = [](std::string_view word) { return find_named(kPositions, "positions", word); };
  section.take_named(
      "positions", m.positions, positions, [](Positions p) { return name_in(kPositions, p); }, from);
  section.take("max_positions", m.max_positions, from);
  const auto norm = [](std::string_view word) { return find_named(kNorms, "norm", word); };
  section.take_named(
      "norm", m.norm, norm, [](Norm n) { return name_in(kNorms, n); }, from);
  section.take("bias", m.bias, from);
  section.take("qkv_bias", m.qkv_bias, from);
  section.take("attention_output_bias", m.attention_output_bias, from);
  section.take("mlp_bias", m.mlp_bias, from);
  section.take("qk_norm", m.qk_norm, from);
  section.take("qk_norm_all", m.qk_norm_all, from);
  section.take("attention_sinks", m.attention_sinks, from);
  section.take("pre_norms", m.pre_norms, from);
  section.take("post_norms", m.post_norms, from);
  section.take("dropout", m.dropout, from);
  section.take("parallel_block", m.parallel_block, from);
  section.take("parallel_norms", m.parallel_norms, from);
  section.take("embedding_norm", m.embedding_norm, from);
  section.take("norm_weight", m.norm_weight, from);
  section.take("norm_bias", m.norm_bias, from);
  section.take("scaled_embedding", m.scaled_embedding, from);
  section.take("attention_softcap", m.attention_softcap, from);
  section.take("logit_softcap", m.logit_softcap, from);
  section.take("activation_clamp", m.activation_clamp, from);
  section.take("attention_gate", m.attention_gate, from);
  section.take("mtp_layers", m.mtp_layers, from);
}

}  // namespace

Model read_model(SpecReader& reader, const SpecNode* node) {
  if (node == nullptr)
    throw Error(fmt::format("{}: model: missing; a built-in name, a config.json or a map", reader.path));
  const SpecSection section(reader, node, "model", kModelKeys, "base");
  const SpecNode* base = section.find("base");
  Model m;
  std::string from = "default";
  if (base != nullptr) {
    m = section.located(*base, "base", [&] { return load_base(section, *base); });
    from = "model " + base->text;
    section.record("base", base->text, base, from);
  }
  section.take("name", m.name, from);
  read_moe(reader, section.find("moe"), m, from);
  read_mla(reader, section.find("mla"), m, from);
  read_sizes(section, m, base != nullptr, *node, from);
  read_switches(section, m, from);
  read_frozen(section, m);
  read_window(reader, section.find("sliding_window"), m, from);
  read_indexer(reader, section.find("indexer"), m, from);
  read_compressed(reader, section.find("compressed_attention"), m, from);
  read_hyper_connections(reader, section.find("hyper_connections"), m, from);
  read_kinds(section, m, from);
  read_vision(reader, section.find("vision"), m, from);
  read_recurrence(reader, section.find("recurrence"), m, from);
  if (m.name.empty()) m.name = fmt::format("{}x{}", m.layers, m.hidden);
  return m;
}

}  // namespace orrery
