#pragma once

// The results of a few steps of a small model under any strategy, and the distance between the results of two runs.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exec/host/initial.h"
#include "exec/host/run_state.h"
#include "models/layers/expert_sizes.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/sharding.h"
#include "models/spec/software.h"

namespace orrery::test {

inline constexpr double kLimit = 1e-5;        // largest relative distance of gradients, losses and weights
inline constexpr double kChangeLimit = 1e-4;  // largest relative distance of the change of weights under Adam
inline constexpr std::int64_t kSteps = 3;
// Adam's epsilon. Adam's first step is the sign of a gradient: with the usual 1e-8 an element whose gradient is
// rounding noise may move either way, and so with Adafactor, whose epsilon is added to squares. Gradients here deviate
// by 2e-3, 1 (the clip) / sqrt(200,000 weights).
inline constexpr double kEpsilon = 1e-5;

// Weights or gradients of the whole model, by name.
using Tensors = std::map<std::string, std::vector<float>>;

struct Result {
  Tensors gradients, initial, weights;
  Tensors routing;             // by layer and step: the experts of every token of the batch
  std::vector<double> losses;  // mean per token, by step
};

inline const std::string kLlama =
    "{name: tiny-llama, layers: 4, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250}";
inline const std::string kGpt =
    "{name: tiny-gpt, layers: 4, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: "
    "learned, "
    "norm: layernorm, bias: true, tied_embeddings: true, dropout: 0.1}";

inline const std::string kQwen =
    "{name: tiny-qwen, layers: 3, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 96, vocab: 256, qk_norm: true, "
    "qkv_bias: true, tied_embeddings: true}";

inline const std::string kWindow =
    "{name: tiny-window, layers: 3, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250, sliding_window: "
    "{window: 8, every: 2}}";

// Models with experts in some layers.
inline const std::string kMoeBase = "layers: 2, hidden: 64, heads: 4, kv_heads: 2, feed_forward: 96, vocab: 250";
inline std::string with_experts(const std::string& name, const std::string& moe, const std::string& more = "") {
  return fmt::format("{{name: {}, {}{}, moe: {{{}}}}}", name, kMoeBase, more, moe);
}
struct Case {
  std::string model, strategy;
  std::string optimizer = "adamw";
  std::string software = "orrery";
  std::string precision = "fp32", gradient_precision = "fp32";
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.model.substr(0, c.model.find(',')) << ", " << c.strategy << ", " << c.software;
}

inline Spec spec_of(const Case& c) {
  return parse_spec(fmt::format("model: {}\nsequence: 36\ncluster: {{node: dgx-h100, nodes: 8}}\nsoftware: {}\n"
                                "strategy: {{precision: {}, gradient_precision: {}, optimizer: {}, {}}}\n",
                                c.model, c.software, c.precision, c.gradient_precision, c.optimizer, c.strategy),
                    "case");
}

inline Training training_of(const Spec& spec) {
  Training t;
  using Kind = kernels::UpdateRule::Kind;
  t.rule.kind = spec.strategy.optimizer.kind == OptimizerKind::sgd         ? Kind::sgd
                : spec.strategy.optimizer.kind == OptimizerKind::lion      ? Kind::lion
                : spec.strategy.optimizer.kind == OptimizerKind::muon      ? Kind::muon
                : spec.strategy.optimizer.kind == OptimizerKind::adafactor ? Kind::adafactor
                                                                           : Kind::adamw;
  t.rule.learning_rate = t.rule.kind == kernels::UpdateRule::Kind::sgd ? 0.1 : 1e-3;
  t.rule.epsilon = kEpsilon;
  t.rule.square_epsilon = kEpsilon * kEpsilon;
  t.clip = spec.strategy.clip;
  t.seed = 7;
  return t;
}

// Loops over elements go by pointers, since tests are not optimised and calls of operators take most of such a loop.
inline void add(Tensors& tensors, const std::map<std::string, OwnedValues>& owned) {
  for (const auto& [name, v] : owned) {
    auto& all = tensors[name];
    all.resize(static_cast<std::size_t>(v.shape[0] * v.shape[1]), NAN);
    const auto* const places = v.places.data();
    const auto* const values = v.values.data();
    float* const to = all.data();
    for (std::size_t i = 0, n = v.places.size(); i < n; ++i) to[places[i]] = values[i];
  }
}

inline double norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float *p = x.data(), *end = p + x.size(); p != end; ++p) sum += double{*p} * *p;
  return std::sqrt(sum);
}

inline std::vector<float> difference(const std::vector<float>& a, const std::vector<float>& b, std::size_t n) {
  std::vector<float> d(n);
  float* const to = d.data();
  const float *const from = a.data(), *const less = b.data();
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i] - less[i];
  return d;
}

// The largest ||x - reference|| / (||reference|| + spare of the tensor) over the tensors, and its name. Padding rows,
// past the reference's end, take no part.
inline std::pair<double, std::string> worst(const Tensors& x, const Tensors& reference,
                                            const std::map<std::string, double>& spare = {}) {
  std::pair<double, std::string> result = {0, ""};
  for (const auto& [name, r] : reference) {
    const auto it = x.find(name);
    if (it == x.end() || it->second.size() < r.size()) return {INFINITY, name + " is missing"};
    const double apart = norm(difference(it->second, r, r.size()));
    const double error = apart == 0 ? 0 : apart / (norm(r) + (spare.contains(name) ? spare.at(name) : 0));
    if (!(error <= result.first)) result = {error, name};
  }
  return result;
}

inline Tensors change(const Result& r) {
  Tensors d;
  for (const auto& [name, w] : r.weights) d[name] = difference(w, r.initial.at(name), w.size());
  return d;
}

// The same model and batch on one rank, with our own stack. The test reads gradients after the pass that clips them,
// where the stack has one.
inline Spec on_one_rank(const Spec& spec) {
  Spec one = spec;
  Strategy& s = one.strategy;
  s = {.micro_batch = s.micro_batch,
       .global_batch = s.global_batch,
       .precision = Precision::fp32,
       .weights = s.weights,
       .inputs = s.inputs,
       .gradient_precision = Precision::fp32,
       .optimizer = s.optimizer,
       .clip = s.clip,
       .attention = s.attention};
  // Only unfused attention applies dropout to probabilities; without dropout both kinds compute the same.
  if (one.model.dropout == 0) s.attention = Attention::flash;
  one.gpus = 1;
  if (one.second) {
    one.second->offload = false;
    one.second->gpus = 0;
    one.second->strategy.reset();
  }
  for (Model* m : {&one.model, one.second ? &one.second->model : nullptr})
    if (m != nullptr && m->moe) m->moe->pad_to_capacity = false;  // padding changes no number
  one.software = find_software("orrery");
  one.software.kernels.fused_clip = spec.software.kernels.fused_clip || row_of(spec.strategy.sharding).servers;
  return one;
}

// Experts have a capacity for the tokens of one rank and micro-batch: the same runs of tokens, with their capacity, on
// one rank. (What a rank of a context group has is a run where its ring is not in zigzag order and a micro-batch one
// sample.)
inline void route_alike(const Spec& spec, Plan& one) {
  const std::int64_t groups =
      (spec.strategy.sequence_parallel ? spec.strategy.tensor : 1) *
      (spec.strategy.context_zigzag && spec.strategy.context_ring > 1 ? 1 : spec.strategy.context);
  for (const Block& block : one.blocks) {
    const Spec own = block.second ? second_spec(spec) : spec;
    for (const auto* ops : {&block.forward, &block.backward}) {
      for (const std::uint32_t op : *ops) {
        auto* gate = std::get_if<Gate>(&one.ops[op].work);
        if (gate == nullptr) continue;
        gate->groups = groups;
        gate->capacity = expert_sizes(own, own.model.moe->first_layer, gate->rows / groups).capacity;
      }
    }
  }
}

// The number of expert choices that differ between two runs, and the number of all choices.
inline std::pair<std::int64_t, std::int64_t> differing_choices(const Result& r, const Result& one) {
  std::pair<std::int64_t, std::int64_t> result = {0, 0};
  for (const auto& [name, choices] : one.routing) {
    const auto it = r.routing.find(name);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      ++result.second;
      if (it == r.routing.end() || i >= it->second.size() || it->second[i] != choices[i]) ++result.first;
    }
  }
  return result;
}

// Softmax does not see what all keys have in common, the bias of their projection or norm: its exact gradient is zero,
// what is left is rounding, which Adam normalises. Not so where keys are rotated afterwards.
// Takes the biases of keys out; their gradient stays if it is small beside the queries'.
inline Tensors without_key_biases(const Model& m, Tensors tensors, bool gradients) {
  if (m.positions == Positions::rope) return tensors;
  const auto expect_small = [](const std::vector<float>& keys, const std::vector<float>& queries) {
    EXPECT_LE(norm(keys), kLimit * norm(queries));
  };
  for (auto& [name, values] : tensors) {
    if (m.qk_norm && name.ends_with("attention.key norm.bias")) {
      if (gradients) expect_small(values, tensors.at(name.substr(0, name.find("key")) + "query norm.bias"));
      std::fill(values.begin(), values.end(), 0.0F);
    }
    if (m.qk_norm || !name.ends_with("attention.qkv.bias")) continue;
    const auto queries = values.begin() + m.heads * m.head_dim, keys = queries + m.kv_heads * m.head_dim;
    if (gradients) expect_small({queries, keys}, {values.begin(), queries});
    std::fill(queries, keys, 0.0F);
  }
  return tensors;
}

// The distance of a run from the run on one rank, as multiples of the limits, with the name of the farthest tensor.
struct Distance {
  double gradient = 0, weight = 0, change = 0, loss = 0;
  std::string of_gradient, of_weight, of_change;
};

// Leaves out weights that begin as zeros: they consist only of their change, which has a separate limit.
inline Tensors from_nonzero(const Result& r) {
  Tensors weights = r.weights;
  std::erase_if(weights, [&](const auto& w) { return norm(r.initial.at(w.first)) == 0; });
  return weights;
}

// A weight is rounded in every step, by half of 2^-23 of it; where it hardly changes (norms) that alone may pass the
// limit of its change.
inline std::map<std::string, double> rounding(const Result& r) {
  std::map<std::string, double> spare;
  for (const auto& [name, w] : r.weights) spare[name] = kSteps * std::ldexp(norm(w), -24) / kChangeLimit;
  return spare;
}

inline Distance distance(const Spec& spec, const Result& r, const Result& one) {
  const auto apart = [&](const Tensors& x, const Tensors& reference, bool gradients,
                         const std::map<std::string, double>& spare = {}) {
    return worst(without_key_biases(spec.model, x, gradients), without_key_biases(spec.model, reference, gradients),
                 spare);
  };
  Distance d;
  std::tie(d.gradient, d.of_gradient) = apart(r.gradients, one.gradients, true);
  std::tie(d.weight, d.of_weight) = apart(r.weights, from_nonzero(one), false);
  std::tie(d.change, d.of_change) = apart(change(r), change(one), false, rounding(one));
  EXPECT_EQ(r.losses.size(), one.losses.size());
  for (std::size_t s = 0; s < std::min(r.losses.size(), one.losses.size()); ++s) {
    const double error = std::abs(r.losses[s] / one.losses[s] - 1);
    if (!(error <= d.loss)) d.loss = std::isnan(error) ? INFINITY : error;
  }
  return d;
}

}  // namespace orrery::test
