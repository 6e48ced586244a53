#include "models/partition/layers_of_stages.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/schedule/schedules.h"
#include "models/spec/compressed.h"
#include "models/spec/vision.h"

namespace orrery {
namespace {

// Costs of the embedding, of each layer, and of the head, in multiplications per token.
struct StageCosts {
  double embedding = 0, layer = 0, head = 0;
};

// Returns the layers of each stage by nanotron's own rule: a stage is closed when the running cost exceeds its share of
// the total. The first stage has the embedding and the last stage the head; every other stage gets at least one layer,
// whatever the layer's cost.
std::vector<std::int64_t> cut_by_share(const StageCosts& cost, std::int64_t count, std::int64_t stages) {
  const double total = cost.embedding + static_cast<double>(count) * cost.layer + cost.head;
  std::vector<std::int64_t> layers(stages, 0);
  double done = 0;
  std::int64_t stage = 0;
  const auto filled = [&] { return stage == 0 || layers[stage] > 0; };
  for (std::int64_t i = 0; i < count + 2; ++i) {  // the loop runs over the embedding, the layers and the head
    const bool layer = i > 0 && i <= count;
    const std::int64_t left = count + 1 - i;  // number of layers left, this one included
    if (layer && filled() && stage + 2 < stages && left <= stages - 2 - stage) ++stage;
    if (layer) ++layers[stage];
    done += layer ? cost.layer : i == 0 ? cost.embedding : cost.head;
    while (stage + 1 < stages && filled() &&
           done >= total * static_cast<double>(stage + 1) / static_cast<double>(stages)) {
      ++stage;
    }
  }
  return layers;
}

// Divides the layers so that the most expensive stage is as cheap as possible. All layers cost the same, so each layer
// goes to the stage that is cheapest with one more layer. Stages without embedding or head get at least one layer.
std::vector<std::int64_t> cut_evenly_by_cost(const StageCosts& cost, std::int64_t count, std::int64_t stages) {
  std::vector<std::int64_t> layers(stages, 0);
  const std::int64_t inner = std::clamp<std::int64_t>(stages - 2, 0, count);
  std::fill_n(layers.begin() + (stages > 1 ? 1 : 0), inner, 1);
  // cost of a stage if it got one more layer, and the stage's index
  using Candidate = std::pair<double, std::int64_t>;
  const auto candidate = [&](std::int64_t s) {
    return Candidate((s == 0 ? cost.embedding : 0) + (s + 1 == stages ? cost.head : 0) +
                         static_cast<double>(layers[s] + 1) * cost.layer,
                     s);
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> cheapest;
  for (std::int64_t s = 0; s < stages; ++s) cheapest.push(candidate(s));
  for (std::int64_t i = inner; i < count; ++i) {
    const std::int64_t stage = cheapest.top().second;
    cheapest.pop();
    ++layers[stage];
    cheapest.push(candidate(stage));
  }
  return layers;
}

// Returns the multiplications per token of the matrix products of attention to compressed keys.
double shared_keys_cost(const Model& m, Mixer mixer) {
  const CompressedAttention& a = *m.compressed_attention;
  const std::int64_t width = m.heads * m.head_dim, groups = a.output_groups * a.output_rank;
  std::int64_t products = (m.hidden + width) * a.q_lora_rank + m.hidden * (m.head_dim + groups) + width * a.output_rank;
  const auto compressor = [&](std::int64_t columns) { return 2 * m.hidden * a.runs(mixer) * columns; };
  if (a.rate(mixer) > 0) products += compressor(m.head_dim);
  if (mixer == Mixer::compressed_sparse) {
    const Indexer& i = *m.indexer;
    products += a.q_lora_rank * i.heads * i.head_dim + m.hidden * i.heads + compressor(i.head_dim);
  }
  return static_cast<double>(products);
}

// Returns the multiplications per token of attention's products with keys and values: with those of all tokens, or with
// those that compressed attention reads on average.
double scores_cost(const Spec& spec, Mixer mixer) {
  const Model& m = spec.model;
  const double width = 2 * static_cast<double>(m.heads * m.head_dim), s = static_cast<double>(spec.sequence);
  if (mixer == Mixer::attention) return s * width;
  return uses_compressed_attention(mixer) ? attended_pairs(m, mixer, spec.sequence) / s * width : 0;
}

// Returns the multiplications per token of the matrix products in a layer's mixer (attention or a recurrence), without
// attention's scores and values.
double mixer_cost(const Model& m, Mixer mixer) {
  const auto h = static_cast<double>(m.hidden);
  if (mixer == Mixer::none) return 0;
  if (mixer == Mixer::recurrence) {
    const Recurrence& r = *m.recurrence;
    return h * static_cast<double>(r.projected() + r.values()) + 3 * static_cast<double>(r.values() * r.key_dim);
  }
  if (uses_compressed_attention(mixer)) return shared_keys_cost(m, mixer);
  return 2 * h * static_cast<double>(m.heads * m.head_dim) + 2 * h * static_cast<double>(m.kv_heads * m.head_dim);
}

// Returns the multiplications per token of the matrix products in a layer of one kind. In a layer with experts, only
// the experts that a token is routed to are counted.
double kind_cost(const Model& m, const LayerKind& kind) {
  const double matrices = m.gated ? 3 : 2;
  const std::int64_t feed_forward =
      m.moe ? m.moe->top_k * m.moe->feed_forward + m.moe->shared_feed_forward : m.feed_forward;
  return mixer_cost(m, kind.mixer) +
         (kind.feed_forward ? matrices * static_cast<double>(m.hidden) * static_cast<double>(feed_forward) : 0);
}

// Returns the costs of embedding, layer and head; if the model has layers of several kinds, the cost of a layer is the
// mean over the kinds that the layers repeat (Model::layer_kinds).
StageCosts block_costs(const Spec& spec) {
  const Model& m = spec.model;
  const auto h = static_cast<double>(m.hidden);
  const auto v = static_cast<double>(m.vocab);
  const std::vector<LayerKind> kinds = m.layer_kinds.empty() ? std::vector<LayerKind>(1) : m.layer_kinds;
  double layer = 0, scores = 0;
  for (const LayerKind& kind : kinds) {
    layer += kind_cost(m, kind) / static_cast<double>(kinds.size());
    scores += scores_cost(spec, kind.mixer) / static_cast<double>(kinds.size());
  }
  double embedding = 0;
  double head = v * h;
  if (spec.software.layout.stage_rule == StageRule::by_cost_nanotron) {
    layer = 4 * h * h + 3 * h * static_cast<double>(m.feed_forward);
  } else if (spec.software.layout.stage_rule == StageRule::by_parameters) {
    embedding = v * h;
  } else {
    layer += scores;
  }
  if (spec.images)  // the encoder is on the first stage, before the embedding
    embedding += spec.software.layout.stage_rule == StageRule::by_parameters
                     ? static_cast<double>(vision_parameter_count(m))
                     : encoder_products(spec) / static_cast<double>(spec.sequence);
  // multi-token-prediction modules are on the last stage
  head += static_cast<double>(m.mtp_layers) * (layer + 2 * h * h + v * h);
  return {embedding, layer, head};
}

// Returns the layers of each stage if the number of ranks of each stage is given, by DAPPLE's planner (Fan et al. 2021,
// arXiv:2007.01045, section 4). A pipeline's latency is the sum over all stages plus m - 1 times the slowest stage (m
// micro-batches). The division into stages changes the slowest stage most, so the time of the slowest stage is
// minimized. best[k][n]: the time of the slowest of k stages that have the first n layers. The planner in dapple.h also
// finds the numbers of ranks.
std::vector<std::int64_t> cut_for_least_latency(const std::vector<double>& costs, const Strategy& s) {
  const std::int64_t stages = s.pipeline * s.virtual_stages;
  const auto layers = static_cast<std::int64_t>(costs.size());
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(layers + 1, never));
  std::vector<std::vector<std::int64_t>> taken(stages + 1, std::vector<std::int64_t>(layers + 1, 0));
  best[0][0] = 0;
  for (std::int64_t k = 1; k <= stages; ++k) {
    for (std::int64_t n = k; n <= layers; ++n) {
      double last = 0;
      for (std::int64_t own = 1; own <= n - k + 1; ++own) {
        last += costs[n - own];
        const double dearest = std::max(best[k - 1][n - own], last / static_cast<double>(s.replicas_of(k - 1)));
        if (dearest >= best[k][n]) continue;
        best[k][n] = dearest;
        taken[k][n] = own;
      }
    }
  }
  std::vector<std::int64_t> cut;
  for (std::int64_t k = stages, n = layers; k > 0; --k) {
    cut.insert(cut.begin(), taken[k][n]);
    n -= taken[k][n];
  }
  return cut;
}

// Divides `total` equal layers over the stages; the first total % stages stages get one more.
std::vector<std::int64_t> spread(std::int64_t total, std::int64_t stages) {
  std::vector<std::int64_t> layers(stages, total / stages);
  for (std::int64_t i = 0; i < total % stages; ++i) ++layers[i];
  return layers;
}

}  // namespace

std::vector<double> layer_costs(const Spec& spec) {
  Spec one = spec;
  one.software.layout.stage_rule = StageRule::by_cost;
  const StageCosts ends = block_costs(one);
  std::vector<double> costs;
  for (std::int64_t i = 0; i < spec.model.layers; ++i) {
    one.model.moe = has_experts(spec.model, i) ? spec.model.moe : std::nullopt;
    one.model.layer_kinds = {layer_kind(spec.model, i)};
    costs.push_back(block_costs(one).layer);
  }
  costs.front() += ends.embedding;
  costs.back() += ends.head;
  return costs;
}

bool plans_stages(const Strategy& strategy) {
  const ScheduleRow* row = schedule_in_table(strategy.schedule);
  return row != nullptr && row->plans_stages;
}

std::vector<std::int64_t> stage_layers(const Spec& spec) {
  const std::int64_t stages = spec.strategy.pipeline * spec.strategy.virtual_stages;
  const std::int64_t layers = spec.model.layers;
  const StageRule rule = spec.software.layout.stage_rule;
  std::vector<std::int64_t> cut;
  if (!spec.strategy.stage_layers.empty()) {
    cut = spec.strategy.stage_layers;
  } else if (spreads_vocabulary(spec.strategy.schedule)) {
    // All stages share the vocabulary, so embedding and head weigh equally on each stage, and only layers are divided.
    cut = spread(layers, stages);
  } else if (plans_stages(spec.strategy) && stages > 1 && layers >= stages) {
    cut = cut_for_least_latency(layer_costs(spec), spec.strategy);
  } else if (rule == StageRule::even && layers % stages == 0) {
    cut = spread(layers, stages);
  } else if ((rule == StageRule::even && (layers + 2) % stages == 0) || rule == StageRule::even_with_embedding) {
    cut = spread(layers + 2, stages);
    --cut.front();
    --cut.back();
  } else {
    cut = (rule == StageRule::by_cost_nanotron ? cut_by_share : cut_evenly_by_cost)(block_costs(spec), layers, stages);
  }
  for (const std::int64_t n : cut) {
    if (n < 0) throw Error(fmt::format("strategy.pipeline: {} stages leave one without a layer; use fewer", stages));
  }
  return cut;
}

std::int64_t interleave_group(const Spec& spec, std::int64_t stages, std::int64_t micro_batches) {
  if (spec.strategy.interleave_group > 0) return spec.strategy.interleave_group;
  if (spec.software.layout.interleave_group == InterleaveGroup::stages) return stages;
  return micro_batches / std::max<std::int64_t>(1, micro_batches / stages);
}

std::int64_t interleave_group(const Spec& spec) {
  return interleave_group(spec, spec.strategy.pipeline, spec.strategy.micro_batches());
}

bool interleaves(const Spec& spec, std::int64_t stages, std::int64_t micro_batches) {
  const std::int64_t rest = micro_batches % interleave_group(spec, stages, micro_batches);
  const bool few = rest > 0 && (spec.software.layout.interleave_group == InterleaveGroup::rounds || rest < stages);
  return !few || spec.software.layout.uneven_interleaving;
}

}  // namespace orrery
