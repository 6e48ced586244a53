// This file lists the parameters of a model, by architecture. The sum for every built-in model is its published number
// of parameters (tests/data/published_params.json).
#include "models/spec/model.h"

#include <algorithm>

namespace orrery {
namespace {

using List = std::vector<Parameter>;

void add_norm(List& list, const Model& m, const std::string& name, std::int64_t width) {
  if (m.norm_weight) list.push_back({name + ".weight", width});
  if (m.norm == Norm::layernorm && m.norm_bias) list.push_back({name + ".bias", width});
}

// Adds a matrix and its bias. If the matrix is column-parallel, its bias is cut with it; the bias of a row-parallel
// matrix is added once, after the partial products are summed, so it is not cut.
void add_linear(List& list, const std::string& name, std::int64_t out, std::int64_t in, Partition partition,
                bool bias) {
  list.push_back({name + ".weight", out, in, partition});
  if (bias) list.push_back({name + ".bias", out, 1, partition == Partition::row ? Partition::replicated : partition});
}

// Adds the two matrices of an adapter (LoRA) beside a linear layer (out, in): A is (rank, in), B is (out, rank).
void add_adapter(List& list, const Model& m, const std::string& name, std::int64_t out, std::int64_t in,
                 Partition partition) {
  const bool rows = partition == Partition::row;
  list.push_back({name + ".lora_a.weight", m.lora->rank, in, rows ? partition : Partition::replicated});
  list.push_back({name + ".lora_b.weight", out, m.lora->rank, rows ? Partition::replicated : partition});
}

void add_attention(List& list, const Model& m) {
  const std::int64_t qkv = (m.heads + 2 * m.kv_heads) * m.head_dim;
  add_linear(list, "attention.qkv", qkv, m.hidden, Partition::column, has_qkv_bias(m));
  if (m.lora && m.lora->qkv) add_adapter(list, m, "attention.qkv", qkv, m.hidden, Partition::column);
  if (m.qk_norm || m.qk_norm_all) {
    add_norm(list, m, "attention.q_norm", m.qk_norm_all ? m.heads * m.head_dim : m.head_dim);
    add_norm(list, m, "attention.k_norm", m.qk_norm_all ? m.kv_heads * m.head_dim : m.head_dim);
  }
  if (m.attention_sinks) list.push_back({"attention.sinks", m.heads, 1, Partition::column});
  if (m.attention_gate) add_linear(list, "attention.gate", m.heads * m.head_dim, m.hidden, Partition::column, false);
  add_linear(list, "attention.out", m.hidden, m.heads * m.head_dim, Partition::row, has_attention_output_bias(m));
  if (m.lora && m.lora->out) add_adapter(list, m, "attention.out", m.hidden, m.heads * m.head_dim, Partition::row);
}

// Adds the weights of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries and keys/values are
// computed from compressed vectors, which have norms.
void add_latent_attention(List& list, const Model& m) {
  const Mla& a = *m.mla;
  const std::int64_t query = m.heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
  if (a.q_lora_rank > 0) {
    add_linear(list, "attention.q_down", a.q_lora_rank, m.hidden, Partition::replicated, m.bias);
    add_norm(list, m, "attention.q_norm", a.q_lora_rank);
    add_linear(list, "attention.q_up", query, a.q_lora_rank, Partition::column, m.bias);
  } else {
    add_linear(list, "attention.q", query, m.hidden, Partition::column, m.bias);
  }
  add_linear(list, "attention.kv_down", a.kv_lora_rank + a.qk_rope_head_dim, m.hidden, Partition::replicated, m.bias);
  add_norm(list, m, "attention.kv_norm", a.kv_lora_rank);
  const std::int64_t key_value = m.heads * (a.qk_nope_head_dim + a.v_head_dim);
  add_linear(list, "attention.kv_up", key_value, a.kv_lora_rank, Partition::column, m.bias);
  add_linear(list, "attention.out", m.hidden, m.heads * a.v_head_dim, Partition::row, has_attention_output_bias(m));
  if (!m.indexer) return;
  const Indexer& i = *m.indexer;
  add_linear(list, "indexer.query", i.heads * i.head_dim, a.q_lora_rank, Partition::replicated, false);
  add_linear(list, "indexer.key", i.head_dim, m.hidden, Partition::replicated, false);
  list.push_back({"indexer.key_norm.weight", i.head_dim});
  list.push_back({"indexer.key_norm.bias", i.head_dim});
  add_linear(list, "indexer.weights", i.heads, m.hidden, Partition::replicated, false);
}

// Adds the weights of the module that compresses runs of tokens into keys of `columns` columns by a gated sum: one
// projection for the contents and one for the gate, each with `columns` columns for every run of tokens that a key is
// made of, and a bias of the gate for each position in a run.
void add_compressor(List& list, const Model& m, const std::string& name, Mixer mixer, std::int64_t columns) {
  const std::int64_t summed = CompressedAttention::runs(mixer) * columns;
  add_linear(list, name + ".key", summed, m.hidden, Partition::replicated, false);
  add_linear(list, name + ".gate", summed, m.hidden, Partition::replicated, false);
  list.push_back({name + ".position_bias", m.compressed_attention->rate(mixer) * summed});
  add_norm(list, m, name + ".key_norm", columns);
}

// Adds the weights of DeepSeek-V4's attention (classes Attention, Compressor and Indexer of inference/model.py, which
// DeepSeek published with the weights).
void add_compressed_attention(List& list, const Model& m, Mixer mixer) {
  const CompressedAttention& a = *m.compressed_attention;
  const std::int64_t width = m.heads * m.head_dim, projected = a.output_groups * a.output_rank;
  add_linear(list, "attention.q_down", a.q_lora_rank, m.hidden, Partition::replicated, false);
  add_norm(list, m, "attention.q_norm", a.q_lora_rank);
  add_linear(list, "attention.q_up", width, a.q_lora_rank, Partition::column, false);
  add_linear(list, "attention.key", m.head_dim, m.hidden, Partition::replicated, false);
  add_norm(list, m, "attention.key_norm", m.head_dim);
  if (a.rate(mixer) > 0) add_compressor(list, m, "compressor", mixer, m.head_dim);
  if (mixer == Mixer::compressed_sparse) {
    const Indexer& i = *m.indexer;
    add_linear(list, "indexer.query", i.heads * i.head_dim, a.q_lora_rank, Partition::replicated, false);
    add_compressor(list, m, "indexer", mixer, i.head_dim);
    add_linear(list, "indexer.weights", i.heads, m.hidden, Partition::replicated, false);
  }
  if (m.attention_sinks) list.push_back({"attention.sinks", m.heads, 1, Partition::column});
  add_linear(list, "attention.out_groups", projected, width / a.output_groups, Partition::column, false);
  add_linear(list, "attention.out", m.hidden, projected, Partition::row, has_attention_output_bias(m));
}

// Adds the weights of hyper-connections before a branch (attention or MLP), or before the output head, which needs only
// the weights of a sum of the streams.
void add_hyper_connections(List& list, const Model& m, const std::string& name, bool head) {
  if (!m.hyper_connections) return;
  const HyperConnections& h = *m.hyper_connections;
  const std::int64_t weights = head ? h.streams : h.weights();
  list.push_back({name + ".hyper.weight", weights, h.streams * m.hidden});
  list.push_back({name + ".hyper.bias", weights});
  list.push_back({name + ".hyper.scale", head ? 1 : 3});
}

// Adds the weights of a recurrence. The convolution's weights form no matrix: each column has `taps` weights of its
// own.
void add_recurrence(List& list, const Model& m) {
  const Recurrence& r = *m.recurrence;
  const RecurrenceRow& row = row_of(r.rule);
  add_linear(list, "recurrence.projection", r.projected(), m.hidden, Partition::column, false);
  list.push_back({"recurrence.convolution.weight", r.convolved() * r.taps, 1, Partition::column});
  if (r.convolution_bias) list.push_back({"recurrence.convolution.bias", r.convolved(), 1, Partition::column});
  list.push_back({"recurrence.decay", r.heads, 1, Partition::column});
  list.push_back({"recurrence.step.bias", r.heads, 1, Partition::column});
  if (row.skips) list.push_back({"recurrence.skip", r.heads, 1, Partition::column});
  if (row.norm_of_heads)
    list.push_back({"recurrence.result_norm.weight", r.value_dim});
  else
    list.push_back({"recurrence.result_norm.weight", r.values(), 1, Partition::column});
  add_linear(list, "recurrence.output", m.hidden, r.values(), Partition::row, false);
}

void add_mlp(List& list, const Model& m, const std::string& name, std::int64_t width) {
  const std::int64_t up = (m.gated ? 2 : 1) * width;
  const bool adapted = m.lora && m.lora->mlp;
  add_linear(list, name + ".up", up, m.hidden, Partition::column, has_mlp_bias(m));
  if (adapted) add_adapter(list, m, name + ".up", up, m.hidden, Partition::column);
  add_linear(list, name + ".down", m.hidden, width, Partition::row, has_mlp_bias(m));
  if (adapted) add_adapter(list, m, name + ".down", m.hidden, width, Partition::row);
}

void add_experts(List& list, const Model& m, bool hashed) {
  const Moe& moe = *m.moe;
  add_linear(list, "moe.router", moe.experts, m.hidden, Partition::replicated, moe.router_bias);
  if (moe.correction_bias && !hashed) list.push_back({"moe.router.correction_bias", moe.experts});
  if (moe.shared_feed_forward > 0) add_mlp(list, m, "moe.shared", moe.shared_feed_forward);
  if (moe.shared_gate) add_linear(list, "moe.shared_gate", 1, m.hidden, Partition::replicated, false);
  const std::size_t first = list.size();
  add_mlp(list, m, "moe.experts", moe.feed_forward);
  for (std::size_t i = first; i < list.size(); ++i) list[i].experts = moe.experts;
}

std::int64_t sum(const List& list) {
  std::int64_t total = 0;
  for (const Parameter& p : list) total += elements(p);
  return total;
}

}  // namespace

static void add_mixer(List& list, const Model& m, Mixer mixer) {
  const std::string name = mixer == Mixer::recurrence ? "recurrence" : "attention";
  add_hyper_connections(list, m, name, false);
  if (m.pre_norms) add_norm(list, m, name + ".norm", m.hidden);
  if (mixer == Mixer::recurrence)
    add_recurrence(list, m);
  else if (uses_compressed_attention(mixer))
    add_compressed_attention(list, m, mixer);
  else
    m.mla ? add_latent_attention(list, m) : add_attention(list, m);
  if (m.post_norms) add_norm(list, m, name + ".post_norm", m.hidden);
}

std::vector<Parameter> layer_parameters(const Model& m, std::int64_t layer) {
  List list;
  const LayerKind kind = layer_kind(m, layer);
  if (kind.mixer != Mixer::none) add_mixer(list, m, kind.mixer);
  if (!kind.feed_forward) return list;
  add_hyper_connections(list, m, "mlp", false);
  if (m.parallel_block ? m.parallel_norms : m.pre_norms) add_norm(list, m, "mlp.norm", m.hidden);
  has_experts(m, layer) ? add_experts(list, m, is_hashed(m, layer)) : add_mlp(list, m, "mlp", m.feed_forward);
  if (m.post_norms) add_norm(list, m, "mlp.post_norm", m.hidden);
  return list;
}

std::vector<Parameter> embedding_parameters(const Model& m, std::int64_t sequence) {
  List list{{"embedding.tokens.weight", m.vocab, m.hidden, Partition::vocabulary}};
  if (m.positions == Positions::learned) {
    list.push_back({"embedding.positions.weight", m.max_positions > 0 ? m.max_positions : sequence, m.hidden});
  }
  if (m.embedding_norm) add_norm(list, m, "embedding.norm", m.hidden);
  return list;
}

std::vector<Parameter> head_parameters(const Model& m) {
  List list;
  add_hyper_connections(list, m, "head", true);
  add_norm(list, m, "head.norm", m.hidden);
  if (!m.tied_embeddings) list.push_back({"head.output.weight", m.vocab, m.hidden, Partition::vocabulary});
  return list;
}

std::vector<Parameter> prediction_parameters(const Model& m) {
  List list;
  add_norm(list, m, "prediction.embedding_norm", m.hidden);
  add_norm(list, m, "prediction.hidden_norm", m.hidden);
  list.push_back({"prediction.projection.weight", m.hidden, 2 * m.hidden});
  for (const Parameter& p : layer_parameters(m, prediction_layer(m))) list.push_back(p);
  add_hyper_connections(list, m, "prediction", true);
  add_norm(list, m, "prediction.final_norm", m.hidden);
  return list;
}

bool has_window(const Model& m, std::int64_t layer) {
  if (m.sliding_window && !m.sliding_window->full_layers.empty())
    return !std::ranges::binary_search(m.sliding_window->full_layers, layer);
  return m.sliding_window && (m.sliding_window->every <= 1 || (layer + 1) % m.sliding_window->every != 0);
}

std::int64_t parameter_count(const Model& m, std::int64_t sequence) {
  std::int64_t total = sum(embedding_parameters(m, sequence)) + sum(head_parameters(m));
  for (std::int64_t layer = 0; layer < m.layers; ++layer) total += sum(layer_parameters(m, layer));
  return total;
}

}  // namespace orrery
