#include "sim/report/flops.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/spec/compressed.h"
#include "models/spec/documents.h"
#include "models/spec/vision.h"

namespace orrery {

namespace {

// Returns the number of elements of a layer's matrices that one token is multiplied with. Of the matrices of experts,
// top_k count.
double met_by_a_token(const Model& m, std::int64_t layer) {
  double sum = 0;
  for (const Parameter& p : layer_parameters(m, layer)) {
    if (p.in == 1) continue;
    const double used = p.experts > 0 ? static_cast<double>(m.moe->top_k) : 1;
    sum += used * static_cast<double>(p.out) * static_cast<double>(p.in);
  }
  return sum;
}

// Returns the number of multiplications per token in a module of multi-token prediction, its logits left out. The
// projection of the hidden states runs on every residual stream.
double of_prediction(const Model& m) {
  const auto hidden = static_cast<double>(m.hidden), streams = static_cast<double>(streams_of(m));
  const double head = m.hyper_connections ? streams * streams * hidden : 0;
  return met_by_a_token(m, prediction_layer(m)) + (1 + streams) * hidden * hidden + head;
}

// Returns the number of multiplications per token and head with the recurrent state, a key_dim x value_dim matrix: one
// per element to read the state, one to add to it, and one more for the delta rule's prediction.
double with_state(RecurrenceRule rule, std::int64_t key_dim, std::int64_t value_dim) {
  return (row_of(rule).corrects ? 3 : 2) * static_cast<double>(key_dim * value_dim);
}

// Returns the number of multiplications per token that a recurrent layer needs besides its weight matrices: those of
// the convolution, and those with the recurrent states.
double of_recurrence(const Model& m, std::int64_t layer) {
  if (layer_kind(m, layer).mixer != Mixer::recurrence) return 0;
  const Recurrence& r = *m.recurrence;
  return static_cast<double>(r.taps * r.convolved()) +
         static_cast<double>(r.heads) * with_state(r.rule, r.key_dim, r.value_dim);
}

// Returns the number of (query, key) pairs in causal attention over s tokens, if a query attends to itself and to
// earlier tokens, to at most `most` keys altogether.
double causal_pairs(double s, double most) { return most * (most + 1) / 2 + (s - most) * most; }

// Returns a third of the number of multiplications with which a layer's indexer (DeepSeek's sparse attention) scores
// all earlier keys for every query of s tokens. The third is returned because callers count a product three times (once
// in forward and twice in backward), while the indexer runs in forward only.
double of_index(const Model& m, std::int64_t layer, std::int64_t s) {
  if (!m.indexer) return 0;
  const double pairs = m.compressed_attention ? indexed_pairs(m, layer_kind(m, layer).mixer, s)
                                              : causal_pairs(static_cast<double>(s), static_cast<double>(s));
  return pairs * static_cast<double>(m.indexer->heads * m.indexer->head_dim) / 3;
}

double of_indexes(const Model& m, std::int64_t s) {
  if (s == 0) return 0;
  double sum = static_cast<double>(m.mtp_layers) * of_index(m, prediction_layer(m), s);
  for (std::int64_t layer = 0; layer < m.layers; ++layer) sum += of_index(m, layer, s);
  return sum;
}

// Returns the number of (query, key) pairs that the mask allows to one head of one layer in the first s tokens of a
// sequence.
double pairs_of_first(const Spec& spec, std::int64_t layer, std::int64_t s) {
  if (s == 0) return 0;
  const Model& m = spec.model;
  if (m.compressed_attention) return attended_pairs(m, layer_kind(m, layer).mixer, s);
  const auto tokens = static_cast<double>(s);
  if (m.indexer) return causal_pairs(tokens, std::min(tokens, static_cast<double>(m.indexer->top_k)));
  const std::int64_t window = has_window(m, layer) ? m.sliding_window->window : 0;
  return spec.documents ? document_pairs(spec, window, false).mean : pairs_of_document(tokens, window);
}

// Returns the number of (query, key) pairs that attention computes for one head of one layer in one sequence. Of
// generated text these are the pairs of the tokens that the pass adds, also with keys in the cache.
double pairs_of(const Spec& spec, std::int64_t layer, AttentionPairs pairs) {
  const bool chosen = spec.model.compressed_attention || spec.model.indexer;
  const std::int64_t cached = spec.generation ? spec.generation->cached : 0, all = cached + spec.sequence;
  if (pairs == AttentionPairs::full && !chosen) return static_cast<double>(spec.sequence) * static_cast<double>(all);
  return pairs_of_first(spec, layer, all) - pairs_of_first(spec, layer, cached);
}

// Sums the (query, key) pairs of all layers with attention. times: a function that returns how often a layer counts.
// Each module for multi-token prediction has as many pairs as the layer prediction_layer(). All layers of one kind of
// attention with a window have equally many pairs, and so have those without; each such number is computed once.
template <class Times>
double pairs_of_layers(const Spec& spec, AttentionPairs pairs, const Times& times) {
  const Model& m = spec.model;
  std::map<std::pair<Mixer, bool>, double> by_kind;
  const auto of_layer = [&](std::int64_t layer) {
    const Mixer mixer = layer_kind(m, layer).mixer;
    if (mixer != Mixer::attention && !uses_compressed_attention(mixer)) return 0.0;
    const auto [kind, is_new] = by_kind.try_emplace({mixer, has_window(m, layer)}, 0);
    if (is_new) kind->second = pairs_of(spec, layer, pairs);
    return kind->second;
  };
  double sum = static_cast<double>(m.mtp_layers) * times(m.layers - 1) * of_layer(prediction_layer(m));
  for (std::int64_t layer = 0; layer < m.layers; ++layer) sum += times(layer) * of_layer(layer);
  return sum;
}

double pairs_of_layers(const Spec& spec, AttentionPairs pairs) {
  return pairs_of_layers(spec, pairs, [](std::int64_t) { return 1.0; });
}

double attention_flops(const FlashAttention& a, AttentionPairs pairs) {
  const bool full = pairs == AttentionPairs::full && a.compressed == 0;
  const double keys = full ? static_cast<double>(a.key) : keys_per_query(a);
  return 2.0 * static_cast<double>(a.batch * a.heads * a.query * (a.head_dim + a.value_dim)) * keys;
}

// The matrix products that a partly frozen model needs. Every weight needs the forward product; a weight that trains
// also needs the product of its own gradient; and if a weight before it trains, the product of the input's gradient is
// needed.
struct Needed {
  double products = 0;         // multiplications per token, summed over all products with weights
  std::vector<double> scores;  // by layer: 3 if attention's products are needed in backward too, else 1
};

Needed needed_products(const Spec& spec) {
  const Model& m = spec.model;
  Needed needed;
  bool below = trains_below(m, 0);
  const auto add = [&](const Parameter& p) {
    const bool trains = !is_frozen(m, p.name);
    const double used = p.in == 1 ? 0 : p.experts > 0 ? static_cast<double>(m.moe->top_k) : 1;
    needed.products += (1.0 + (trains ? 1 : 0) + (below ? 1 : 0)) * used * static_cast<double>(p.out * p.in);
    // The adapter (LoRA) of a frozen matrix is listed after it, but both read the same input. Of the adapter's two
    // matrices only the second has a weight that trains before it (the first one), so that only its input needs a
    // gradient.
    below = below || trains;
  };
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    for (const Parameter& p : layer_parameters(m, layer)) {
      const bool core = p.name == "attention.out.weight";
      if (core) needed.scores.push_back(below ? 3 : 1);
      add(p);
    }
  }
  for (const Parameter& p : head_parameters(m)) add(p);
  if (m.tied_embeddings) add(embedding_parameters(m, spec.sequence).front());
  return needed;
}

// Returns the multiplications of one (query, key) pair in all heads of a layer: of the score, and with the value.
double of_pair(const Model& m) {
  const double value = static_cast<double>(m.mla ? m.mla->v_head_dim : m.head_dim);
  const double query = static_cast<double>(m.mla ? m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim : m.head_dim);
  return static_cast<double>(m.heads) * (query + value);
}

// Returns the number of elements of all layers' matrices that one token is multiplied with.
double layers_met_by_a_token(const Model& m) {
  double sum = 0;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) sum += met_by_a_token(m, layer) + of_recurrence(m, layer);
  // With hyper-connections, a matrix before the output head combines the residual streams.
  if (m.hyper_connections) sum += static_cast<double>(streams_of(m) * streams_of(m)) * static_cast<double>(m.hidden);
  return sum;
}

// Returns the floating-point operations of a pass of generated text, forward alone. Logits are needed of the token
// alone after which one is chosen, or of all that the pass checks; a pass that does not end the prompt needs none.
double generated_flops(const Spec& spec, AttentionPairs pairs) {
  const Model& m = spec.model;
  const Generation& g = *spec.generation;
  const std::int64_t all = g.cached + spec.sequence;
  const std::int64_t chosen = g.checks() ? spec.sequence : all >= g.input ? 1 : 0;
  const double matrices = layers_met_by_a_token(m) * static_cast<double>(spec.sequence);
  const double logits = static_cast<double>(chosen * m.vocab) * static_cast<double>(m.hidden);
  // of_index is a third of what the forward takes.
  const double scores = of_pair(m) * pairs_of_layers(spec, pairs) + 3 * (of_indexes(m, all) - of_indexes(m, g.cached));
  return 2 * static_cast<double>(spec.strategy.global_batch) * (matrices + logits + scores);
}

// Returns the floating-point operations of a step of the model that trains.
double trained_flops(const Spec& spec, AttentionPairs pairs) {
  const Model& m = spec.model;
  const double hidden = static_cast<double>(m.hidden), modules = static_cast<double>(m.mtp_layers);
  double matrices = (1 + modules) * static_cast<double>(m.vocab) * hidden + layers_met_by_a_token(m);
  if (m.mtp_layers > 0) matrices += modules * of_prediction(m);
  const bool part = has_frozen(m);
  const Needed needed = part ? needed_products(spec) : Needed{};
  const auto sequence = static_cast<double>(spec.sequence);
  if (part) {
    const double passes = pairs_of_layers(spec, pairs, [&](std::int64_t layer) { return needed.scores[layer]; });
    return 2 * static_cast<double>(spec.strategy.global_batch) * (sequence * needed.products + of_pair(m) * passes) +
           vision_flops(spec);
  }
  const double scores = of_pair(m) * pairs_of_layers(spec, pairs) + of_indexes(m, spec.sequence);
  return 6 * static_cast<double>(spec.strategy.global_batch) * (sequence * matrices + scores) + vision_flops(spec);
}

// Returns the floating-point operations of the second model's forwards in a step: a third of those of its training.
double second_flops(const Spec& spec, AttentionPairs pairs) {
  if (!spec.second) return 0;
  Spec trained = second_spec(spec);
  trained.model.frozen.clear();
  return trained_flops(trained, pairs) / 3;
}

}  // namespace

double model_flops(const Spec& spec, AttentionPairs pairs) {
  if (spec.generation) return generated_flops(spec, pairs);
  return trained_flops(spec, pairs) + second_flops(spec, pairs);
}

double recomputed_flops(const Plan& plan, const Spec& spec, AttentionPairs pairs) {
  const double all = pairs_of_layers(spec, AttentionPairs::full);
  const double seen = all > 0 ? pairs_of_layers(spec, pairs) / all : 1;
  double total = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (!op.recompute) continue;
    double flops = 0;
    const bool masked = plan.blocks[plan.frames[plan.tasks[t].frame].block].role != BlockRole::vision;
    if (const auto* g = std::get_if<Gemm>(&op.work)) flops = cost_of(*g, 2).flops * (g->heads > 0 && masked ? seen : 1);
    if (const auto* g = std::get_if<GroupedGemm>(&op.work)) flops = cost_of(*g, 2).flops;
    if (const auto* a = std::get_if<FlashAttention>(&op.work)) flops = attention_flops(*a, pairs);
    if (const auto* r = std::get_if<Scan>(&op.work))
      flops = 2 * static_cast<double>(r->rows() * r->heads) * with_state(r->rule, r->key_dim, r->value_dim);
    total += flops * static_cast<double>(plan.classes[plan.slot_of(t)].multiplicity);
  }
  return total / static_cast<double>(plan.steps);
}

}  // namespace orrery
