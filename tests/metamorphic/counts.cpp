// FLOPs, memory and traffic against independent formulas in this file, and against those that `orrery explain` prints.
#include <fmt/format.h>

#include "models/schedule/schedules.h"
#include "models/spec/documents.h"
#include "models/spec/sharding.h"
#include "sim/explain/formulas.h"
#include "sim/predict/predict.h"
#include "sim/report/flops.h"
#include "tests/metamorphic/relations.h"

namespace orrery::test {
namespace {

double num(std::int64_t n) { return static_cast<double>(n); }

// Elements of a layer's matrices: those that one token is multiplied with, and all.
struct Matrices {
  double used = 0, own = 0;
};

double attention_elements(const Model& m) {
  const double h = num(m.hidden), heads = num(m.heads), gate = m.attention_gate ? heads : 0;
  if (!m.mla) return h * num(m.head_dim) * (heads + gate + 2 * num(m.kv_heads)) + heads * num(m.head_dim) * h;
  const double key = num(m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim), value = num(m.mla->v_head_dim);
  const double q = num(m.mla->q_lora_rank), kv = num(m.mla->kv_lora_rank);
  return (q > 0 ? h * q + q * heads * key : h * heads * key) + h * (kv + num(m.mla->qk_rope_head_dim)) +
         kv * heads * (num(m.mla->qk_nope_head_dim) + value) + heads * value * h;
}

Matrices layer_elements(const Model& m, std::int64_t layer) {
  const double h = num(m.hidden), each = m.gated ? 3 : 2, attention = attention_elements(m);
  if (!has_experts(m, layer))
    return {attention + each * h * num(m.feed_forward), attention + each * h * num(m.feed_forward)};
  const Moe& moe = *m.moe;
  const double shared = each * h * num(moe.shared_feed_forward) + (moe.shared_gate ? h : 0),
               router = h * num(moe.experts);
  const double expert = each * h * num(moe.feed_forward), both = attention + router + shared;
  return {both + num(moe.top_k) * expert, both + num(moe.experts) * expert};
}

// Elements of attention: a score and a product with a value for every pair of a query and a key that it sees.
double score_elements(const Model& m) {
  return m.mla ? num(m.heads * (m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim + m.mla->v_head_dim))
               : 2 * num(m.heads * m.head_dim);
}

// Average number of keys that a query sees.
double keys_seen(const Spec& spec, std::int64_t layer, AttentionPairs pairs) {
  const double s = num(spec.sequence);
  if (pairs == AttentionPairs::full) return s;
  const auto seen = [&](double length) {
    const double w = has_window(spec.model, layer) ? std::min(length, num(spec.model.sliding_window->window)) : length;
    return w * (w + 1) / 2 + (length - w) * w;
  };
  if (!spec.documents) return seen(s) / s;
  double pairs_of_all = 0;
  for (std::int64_t sample = 0; sample < spec.strategy.global_batch; ++sample) {
    for (const std::int64_t length : documents_of(spec, sample)) pairs_of_all += seen(num(length));
  }
  return pairs_of_all / num(spec.strategy.global_batch) / s;
}

// FLOPs of a token in a model with adapters on all its layers' matrices, in a layer that is not the first: what is
// frozen costs 4 FLOPs an element, an adapter 6.
double adapted_flops(const Model& m) {
  const double h = num(m.hidden), heads = num(m.heads * m.head_dim), gate = m.attention_gate ? heads : 0;
  const double qkv = heads + gate + 2 * num(m.kv_heads * m.head_dim);
  const double f = num(m.feed_forward), up = m.gated ? 2 * f : f, r = num(m.lora->rank);
  double sum = 4 * (h * qkv + heads * h + h * up + f * h);
  sum += m.lora->qkv ? 6 * r * (h + qkv) : 0;
  sum += m.lora->out ? 6 * r * (h + heads) : 0;
  sum += m.lora->mlp ? 6 * r * (h + up + f + h) : 0;
  return sum;
}

// Bounds of the FLOPs of a step with adapters: below the first one nothing runs back.
std::pair<double, double> bounds_with_adapters(const Spec& spec, AttentionPairs pairs) {
  const Model& m = spec.model;
  const double tokens = num(spec.strategy.global_batch * spec.sequence);
  double layers = 0, first = adapted_flops(m) + 6 * score_elements(m) * keys_seen(spec, 0, pairs);
  for (std::int64_t l = 0; l < m.layers; ++l)
    layers += adapted_flops(m) + 6 * score_elements(m) * keys_seen(spec, l, pairs);
  const double all = layers + 4 * num(m.vocab) * num(m.hidden);
  return {tokens * (all - first), tokens * all};
}

double flops_of(const Spec& spec, AttentionPairs pairs) {
  const Model& m = spec.model;
  const double h = num(m.hidden), tokens = num(spec.strategy.global_batch * spec.sequence), more = num(m.mtp_layers);
  double sum = (1 + more) * num(m.vocab) * h;
  for (std::int64_t l = 0; l < m.layers; ++l)
    sum += layer_elements(m, l).used + score_elements(m) * keys_seen(spec, l, pairs);
  sum += more *
         (layer_elements(m, m.layers - 1).used + 2 * h * h + score_elements(m) * keys_seen(spec, m.layers - 1, pairs));
  return 6 * tokens * sum;
}

void check_parameters(Checks& checks, const Subject& s) {
  const Model& m = s.run.spec.model;
  const double h = num(m.hidden);
  double low = num(m.vocab) * h * (m.tied_embeddings ? 1 : 2);
  if (m.positions == Positions::learned) low += num(m.max_positions > 0 ? m.max_positions : s.run.spec.sequence) * h;
  for (std::int64_t l = 0; l < m.layers; ++l) low += layer_elements(m, l).own;
  const double experts = m.moe ? num(m.moe->experts) : 1;  // norms and biases
  if (m.lora) return;                                      // adapters are counted by their own form
  const double high = low + num(m.layers) * (60 * h + 8 * num(m.feed_forward) * experts) + 1e6;
  const double count = num(parameter_count(m, s.run.spec.sequence));
  if (count < low * (1 - 1e-9) || count > high)
    checks.violated("parameters", fmt::format("{}, matrices and embeddings {} .. {}", count, low, high), s.spec);
}

double bytes_of(const Report& r, std::string_view group) {
  double sum = 0;
  for (const CommunicationRow& row : r.communication) sum += row.group == group ? row.bytes_per_gpu : 0;
  return sum;
}

double parameters_of_a_rank(const Spec& spec) {
  std::vector<Parameter> all = embedding_parameters(spec.model, spec.sequence);
  for (std::int64_t l = 0; l <= spec.model.layers; ++l) {
    const auto more = l < spec.model.layers ? layer_parameters(spec.model, l) : head_parameters(spec.model);
    all.insert(all.end(), more.begin(), more.end());
  }
  double sum = 0;
  for (const Parameter& p : all)
    sum += num(elements(p)) / (p.partition == Partition::replicated ? 1 : num(spec.strategy.tensor));
  // A rank holds at least one whole key and value head, also where there are fewer heads than ranks.
  const Model& m = spec.model;
  const double heads = 1 - num(m.kv_heads) / num(spec.strategy.tensor);
  if (!m.mla && heads > 0) sum += heads * num(m.layers) * 2 * num(m.head_dim) * (num(m.hidden) + (m.bias ? 1 : 0));
  return sum;
}

// Bytes per parameter that a data-parallel step may move: stacks gather once more or less where units stay gathered.
std::vector<double> volume_factors(const Spec& spec) {
  const Strategy& st = spec.strategy;
  const double w = num(storage_bytes(st.precision)), g = num(storage_bytes(st.gradient_precision));
  const double m = num(st.micro_batches());
  const bool each = !st.no_sync.value_or(true);
  const double r = st.no_sync.value_or(false) ? 1 : m;  // reductions of what is sharded
  const double gathered = spec.software.communication.gathers_eight_bit && is_eight_bit(st.precision) ? 1 : w;
  const std::map<std::string_view, std::vector<double>> factors = {
      {"none", {2 * g * (each ? m : 1)}},
      {"zero1", {each ? 2 * m * g + gathered : (spec.software.communication.shards_all_reduce ? 2 : 1) * g + gathered}},
      {"zero2", {(st.no_sync.value_or(spec.software.communication.keep_gradients_whole) ? g : m * g) + gathered}},
      {"zero3", {m * 2 * w + r * g, w + m * w + r * g, m * w + r * g}},
      {"fsdp", {2 * m * w + r * g}},
      {"fsdp-grad-op", {m * w + r * g, w + r * g}}};
  const auto found = factors.find(name_of(st.sharding));
  return found == factors.end() ? std::vector<double>{} : found->second;
}

// The plan's states of a class of ranks by their formula, as explain prints it.
double states_by_formula(const Spec& spec, const Plan& plan, std::size_t slot) {
  double bytes = 0;
  const auto add = [&](StateFormula f, Dimension copies) {
    f.parameters *= plan.classes[slot].versions;
    bytes += f.bytes(num(elements_of(plan, slot, copies)));
  };
  add(of_slot(state_formula(spec, plan, Dimension::data, slot), plan, slot), Dimension::data);
  for (const Dimension d : {Dimension::expert_data, Dimension::embedding}) add(state_formula(spec, plan, d, slot), d);
  return bytes + frozen_bytes(spec, plan, slot);
}

// Whether data-parallel traffic has no formula: a tied vocabulary that all stages share is gathered and reduced with
// both of its uses.
bool has_no_form(const Spec& spec, const Volume& v) {
  const Strategy& st = spec.strategy;
  const bool tied = st.pipeline > 1 && spreads_vocabulary(st.schedule) && spec.model.tied_embeddings;
  return v.what.starts_with("data") && ((row_of(st.sharding).shards_gradients && tied) || st.zero_quantize.any());
}

}  // namespace

void flops(Checks& checks, const Subject& s) {
  const Report& r = s.run.report;
  const double all = num(s.run.spec.gpus) * r.step_time_s * 1e12;
  const Model& model = s.run.spec.model;
  const auto hold = [&](std::string_view name, double rate, AttentionPairs pairs) {
    const double got = rate * all;
    if (model.lora) {
      const auto [low, high] = bounds_with_adapters(s.run.spec, pairs);
      if (got < low || got > high * (1 + 1e-9))
        checks.violated(name, fmt::format("{:.6g}, with adapters {:.6g} .. {:.6g}", got, low, high), s.spec);
      return;
    }
    // The forward of a frozen model beside this one is a third of its training.
    const double second = s.run.spec.second ? flops_of(second_spec(s.run.spec), pairs) / 3 : 0;
    const double whole = flops_of(s.run.spec, pairs) + second, want = model.frozen.empty() ? whole : got;
    if (!model.frozen.empty() && (got > whole * (1 + 1e-9) || got < whole / 3 * (1 - 1e-9)))
      checks.violated(name, fmt::format("{:.6g}, of a model that trains whole {:.6g}", got, whole), s.spec);
    if (!close(got, want, 1e-4))
      checks.violated(name, fmt::format("{:.6g}, by its formula {:.6g} ({:.4f})", got, want, got / want), s.spec);
  };
  hold("flops", r.model_tflops_per_gpu, AttentionPairs::masked);
  hold("flops of all pairs", r.model_tflops_full_attention, AttentionPairs::full);
  if (s.run.spec.model.mtp_layers == 0) check_parameters(checks, s);
}

// Data-parallel traffic of a dense model without a pipeline.
void volumes_by_form(Checks& checks, const Subject& s) {
  const Spec& spec = s.run.spec;
  const Strategy& st = spec.strategy;
  const double ranks = num(st.data * st.context);
  const bool plain = st.pipeline == 1 && !spec.model.moe && spec.model.mtp_layers == 0 && !st.on_grid() &&
                     !is_offloaded(st) && st.shard_group == 0 && st.stage_replicas.empty() && !has_frozen(spec.model) &&
                     !st.zero_quantize.any() && st.optimizer.kind != OptimizerKind::muon && !spec.second;
  if (!plain || ranks < 2) return;
  const double parameters = parameters_of_a_rank(spec);
  // An embedding's backward reads no weights, and a stack may keep those of the output until backward.
  double embedding = 0;
  for (const Parameter& p : embedding_parameters(spec.model, spec.sequence))
    embedding += num(elements(p)) / (p.partition == Partition::replicated ? 1 : num(st.tensor));
  if (!row_of(st.sharding).reshards_after_forward) embedding = 0;
  const double spared = embedding * num(st.micro_batches() * storage_bytes(st.precision));
  std::string wanted;
  for (const double factor : volume_factors(spec)) {
    for (const double less : {0.0, spared, 2 * spared}) {
      const double want = (parameters * factor - less) * (ranks - 1) / ranks;
      if (close(bytes_of(s.run.report, "data"), want, .05, 1e6)) return;
      wanted += fmt::format(" {:.6g}", want);
    }
  }
  if (!wanted.empty())
    checks.violated("data volume", fmt::format("{:.6g}, one of{}", bytes_of(s.run.report, "data"), wanted), s.spec);
}

void formulas(Checks& checks, const Subject& s) {
  constexpr double kLeast = 16e6;              // bytes; below this, vectors and padding matter
  constexpr double kOfLayers = .8, kAll = .2;  // formulas of layers leave the embedding and output out
  const Prediction p = predict(s.run.spec);
  for (const Volume& v : volumes(s.run.spec, p.plan, p.report)) {
    if (has_no_form(s.run.spec, v)) continue;
    const bool of_layers = v.what.find("(layers)") != std::string::npos || v.what.starts_with("tensor");
    if (!close(v.bytes, v.simulated, of_layers ? kOfLayers : kAll, kLeast))
      checks.violated("explain bytes",
                      fmt::format("{} {}: {:.6g}, simulated {:.6g}", v.what, v.formula, v.bytes, v.simulated), s.spec);
  }
  for (std::size_t slot = 0; slot < p.plan.classes.size(); ++slot) {
    const double by_form = states_by_formula(s.run.spec, p.plan, slot), planned = num(states_in_plan(p.plan, slot));
    if (!close(by_form, planned, .02, kLeast))
      checks.violated("explain states",
                      fmt::format("{}: {:.6g}, planned {:.6g}", p.plan.classes[slot].name, by_form, planned), s.spec);
  }
}

}  // namespace orrery::test
