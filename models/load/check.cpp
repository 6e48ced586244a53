// This file has the rules that a spec must obey before it is planned. A broken rule is reported in terms of the spec's
// keys. Combinations of options that are not implemented are in the table of combinations.h, which the planner checks.
#include <algorithm>
#include <numeric>

#include "models/base/sensible.h"
#include "models/load/combinations.h"
#include "models/load/reader.h"
#include "models/schedule/schedules.h"
#include "models/spec/sequence.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

struct Range {
  const char* key;
  std::int64_t value, least, most;
};

struct Real {
  std::string key;
  double value, least;
  double most = 1e9;  // a default limit for microseconds, MiB and GB/s: above real values, and no overflow
};

Broken in_range(std::initializer_list<Range> ranges) {
  for (const Range& r : ranges) {
    if (r.value < r.least || r.value > r.most) {
      return broken(r.key, "{}: {} is not between {} and {}", r.key, r.value, r.least, r.most);
    }
  }
  return {};
}

Broken at_least(std::initializer_list<Real> reals) {
  for (const Real& r : reals) {
    if (!(r.value >= r.least)) return broken(r.key, "{}: {} is not a number of at least {}", r.key, r.value, r.least);
    if (r.value > r.most) return broken(r.key, "{}: {} is above {}", r.key, r.value, r.most);
  }
  return {};
}

// Checks that the divisor divides the value, and returns the broken rule if it does not: "tensor: 16 does not divide
// heads: 40".
Broken divides(const char* divisor_key, std::int64_t divisor, std::string_view key, std::int64_t value) {
  if (value % divisor == 0) return {};
  return broken(divisor_key, "{}: {} does not divide {}: {}", divisor_key, divisor, key, value);
}

// Returns the first of several rules that is broken; a rule is only evaluated if the rules before it hold.
template <class... Rules>
Broken first_of(const Spec& spec, Rules... rules) {
  Broken found;
  ((found.what.empty() ? void(found = rules(spec)) : void()), ...);
  return found;
}

Broken model_rules(const Spec& spec) {
  const Model& m = spec.model;
  if (const std::string rule = broken_rule(m); !rule.empty()) {
    return {"model." + rule.substr(0, rule.find(':')), "model." + rule};
  }
  Broken b = in_range({{"sequence", spec.sequence, 1, 1'000'000'000}});
  if (!b.what.empty()) return b;
  if (m.positions == Positions::learned && m.max_positions > 0 && spec.sequence > m.max_positions) {
    return broken("sequence", "sequence: {} is longer than the model's {} learned positions; shorten it", spec.sequence,
                  m.max_positions);
  }
  for (const LayerKind& kind : m.layer_kinds) {
    const std::int64_t rate = uses_compressed_attention(kind.mixer) ? m.compressed_attention->rate(kind.mixer) : 0;
    if (spec.sequence < rate)
      return broken("sequence", "sequence: {} is shorter than the {} tokens of a compressed key", spec.sequence, rate);
  }
  return {};
}

Broken cluster_rules(const Spec& spec) {
  const Cluster& c = spec.cluster;
  Broken b = in_range({{"cluster.nodes", c.nodes, 1, kMostRanks},
                       {"cluster.gpus_per_node", c.gpus_per_node, 1, kMostRanks},
                       {"cluster.nics", c.nics, 0, 1024},
                       {"cluster.nvlink_domain", c.nvlink_domain, 0, kMostRanks},
                       {"cluster.pcie.gpus_per_switch", c.gpus_per_pcie_switch, 1, 1024},
                       {"cluster.oversubscription.above_gpus", c.oversubscribed_above_gpus, 0, kMostRanks}});
  if (b.what.empty()) {
    b = at_least({{"cluster.nic_Gbps", c.nic_Gbps, 0},
                  {"cluster.power_kW", c.power_kW, 0},
                  {"cluster.oversubscription.ratio", c.oversubscription, 1}});
  }
  if (b.what.empty() && c.host) b = at_least({{"cluster.host.dram_GBps", c.host->dram_GBps, 0}});
  for (const MemoryTier tier : kTiersBeyond) {
    const std::optional<Store>& store = store_of(c, tier);
    if (!b.what.empty() || !store) continue;
    const std::string key = fmt::format("cluster.{}", row_of(tier).name);
    b = at_least({{key + ".read_GBps", store->read_GBps, 0}, {key + ".write_GBps", store->write_GBps, 0}});
  }
  if (!b.what.empty()) return b;
  const bool needs_network = spec.gpus > c.gpus_per_node && spec.gpus > c.nvlink_domain;
  if (needs_network && (c.nics == 0 || c.nic_Gbps <= 0)) {
    return broken("cluster.nic_Gbps", "cluster.nic_Gbps: missing; {} GPUs are more than a node holds", spec.gpus);
  }
  return {};
}

Broken trouble_rules(const Spec& spec) {
  for (const Straggler& s : spec.cluster.stragglers) {
    Broken b = in_range({{"cluster.stragglers", s.rank, 0, spec.gpus - 1}});
    if (b.what.empty()) b = at_least({{"cluster.stragglers", s.slowdown, 1}});
    if (!b.what.empty()) return b;
  }
  const Cluster& c = spec.cluster;
  Broken share = at_least({{"cluster.stragglers.share", c.straggler_share, 0, 1},
                           {"cluster.stragglers.slowdown", c.straggler_slowdown, 1}});
  if (!share.what.empty()) return share;
  if (c.variation) {
    // Beyond a third of the mean a normal distribution has times below 0 too often to stand for kernels.
    constexpr double kMost = 0.3;
    Broken b = at_least({{"cluster.variation.gpus", c.variation->gpus, 0, kMost},
                         {"cluster.variation.kernels", c.variation->kernels, 0, kMost}});
    if (!b.what.empty()) return b;
  }
  if (!spec.cluster.failures) return {};
  const Failures& f = *spec.cluster.failures;
  const Broken b = at_least({{"cluster.failures.node_mtbf_hours", f.node_mtbf_hours, 0},
                             {"cluster.failures.restart_s", f.restart_s, 0},
                             {"cluster.failures.detect_s", f.detect_s, 0},
                             {"cluster.failures.repair_hours", f.repair_hours, 0}});
  if (!b.what.empty()) return b;
  return in_range({{"cluster.failures.checkpoint_every", f.checkpoint_every, 0, 1'000'000'000},
                   {"cluster.failures.spares", f.spares, -1, kMostRanks}});
}

Broken software_rules(const Spec& spec) {
  const Software& w = spec.software;
  Broken b = in_range({{"software.vocab_multiple", w.layout.vocab_multiple, 1, 1'000'000},
                       {"software.loss_gradient_copies", w.kernels.loss_gradient_copies, 0, 100},
                       {"software.flat_copies", w.memory.flat_copies, 0, 100},
                       {"software.loss_metrics", w.kernels.loss_metrics, 0, 100},
                       {"software.nccl_minor", w.communication.nccl_minor, 0, 99},
                       {"software.attention_copies", w.kernels.attention_copies, 0, 100}});
  if (!b.what.empty()) return b;
  for (const SoftwareKey& key : software_keys()) {
    const auto* real = std::get_if<SoftwareValue<double>>(&key.field);
    if (real != nullptr && b.what.empty()) b = at_least({{fmt::format("software.{}", key.name), real->get(w), 0}});
  }
  const Software::Communication& c = w.communication;
  if (b.what.empty() && c.bucket_MiB > 0 && c.bucket_elements + c.bucket_elements_of_rank > 0)
    return broken("software.bucket_MiB", "software.bucket_MiB: bucket_elements count too; set one of them to 0");
  return b;
}

Broken range_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  Broken b = in_range({{"steps", spec.steps, 1, 1'000'000},
                       {"gpus", spec.gpus, 1, kMostRanks},
                       {"tensor", s.tensor, 1, kMostRanks},
                       {"tensor_depth", s.tensor_depth, 1, kMostRanks},
                       {"pipeline", s.pipeline, 1, kMostRanks},
                       {"virtual_stages", s.virtual_stages, 1, 100'000},
                       {"interleave_group", s.interleave_group, 0, 1'000'000},
                       {"extra_warm_up", s.extra_warm_up, 0, 1'000'000},
                       {"context", s.context, 1, kMostRanks},
                       {"context_ring", s.context_ring, 1, kMostRanks},
                       {"context_ulysses", s.context_ulysses, 1, kMostRanks},
                       {"expert", s.expert, 1, kMostRanks},
                       {"expert_tensor", s.expert_tensor, 1, kMostRanks},
                       {"data", s.data, 1, kMostRanks},
                       {"shard_group", s.shard_group, 0, kMostRanks},
                       {"prefetch_units", s.prefetch_units, 0, 100'000},
                       {"units_in_flight", s.units_in_flight, 1, 100'000},
                       {"micro_batch", s.micro_batch, 1, 1'000'000},
                       {"global_batch", s.global_batch, 1, 1'000'000'000},
                       {"recompute_layers", s.recompute.layers.value_or(0), 0, spec.model.layers},
                       {"offload.tiling", s.offload.tiling, 1, 1'000'000},
                       {"offload.activations.layers", s.offload.activation_layers.value_or(0), 0, spec.model.layers}});
  if (!b.what.empty()) return b;
  return at_least({{"bucket_MiB", s.bucket_MiB, 0}, {"clip", s.clip, 0}});
}

Broken gpu_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const std::int64_t inner = s.tensor * s.places();
  if (inner > kMostRanks || inner * s.context > kMostRanks || inner * s.context * s.data > kMostRanks) {
    return broken("data", "data: tensor * pipeline * context * data is above {}", kMostRanks);
  }
  if (has_second_apart(spec) && s.gpus() + spec.second->gpus != spec.gpus)
    return broken("gpus",
                  "gpus: {} is not tensor * pipeline * context * data + gpus of the {} = {} * {} * {} * {} + {}",
                  spec.gpus, name_of(spec.second->role), s.tensor, s.places(), s.context, s.data, spec.second->gpus);
  if (!has_second_apart(spec) && s.gpus() != spec.gpus) {
    return broken("gpus", "gpus: {} is not tensor * pipeline * context * data = {} * {} * {} * {} = {}", spec.gpus,
                  s.tensor, s.places(), s.context, s.data, s.gpus());
  }
  if (spec.gpus > gpus_of(spec.cluster)) {
    return broken("gpus", "gpus: {} are more than the cluster's {} (nodes: {} of {})", spec.gpus, gpus_of(spec.cluster),
                  spec.cluster.nodes, spec.cluster.gpus_per_node);
  }
  return {};
}

Broken tensor_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Model& m = spec.model;
  if (s.on_grid()) return grid_rules(spec);
  Broken b = divides("tensor", s.tensor, "heads", m.heads);
  if (b.what.empty()) b = divides("tensor", s.tensor, "feed_forward", m.feed_forward);
  if (b.what.empty() && !m.mla && m.kv_heads % s.tensor != 0 && s.tensor % m.kv_heads != 0) {
    b = broken("tensor", "tensor: {} and kv_heads: {}: neither divides the other", s.tensor, m.kv_heads);
  }
  if (b.what.empty() && m.compressed_attention)
    b = divides("tensor", s.tensor, "compressed_attention.output_groups", m.compressed_attention->output_groups);
  if (b.what.empty() && m.recurrence) b = divides("tensor", s.tensor, "recurrence.heads", m.recurrence->heads);
  if (b.what.empty() && m.recurrence) b = divides("tensor", s.tensor, "recurrence.groups", m.recurrence->groups);
  return b;
}

Broken sequence_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  Broken b = divides("context", s.context, "sequence", spec.sequence);
  if (b.what.empty() && s.sequence_parallel) {
    b = divides("tensor", s.tensor, "sequence / context", spec.sequence / s.context);
    if (!b.what.empty()) b.what += "; sequence_parallel needs it";
  }
  if (!b.what.empty()) return b;
  const std::string cut = broken_cut(s, spec.model, spec.sequence);
  if (!cut.empty()) return broken("context", "{}", cut);
  return {};
}

Broken stage_layer_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const std::int64_t stages = s.pipeline * s.virtual_stages;
  const auto given = static_cast<std::int64_t>(s.stage_layers.size());
  if (given != stages) {
    return broken("stage_layers", "stage_layers: {} entries, but pipeline * virtual_stages = {}", given, stages);
  }
  std::int64_t sum = 0;
  for (std::int64_t layers : s.stage_layers) {
    if (layers < 0 || layers > spec.model.layers)
      return broken("stage_layers", "stage_layers: {} is not between 0 and layers: {}", layers, spec.model.layers);
    sum += layers;
  }
  if (sum != spec.model.layers)
    return broken("stage_layers", "stage_layers: they sum to {}, not to layers: {}", sum, spec.model.layers);
  return {};
}

// Checks the numbers of pipeline stages and layers. The embedding and the head can each have a stage of their own, so
// there can be two more stages than layers.
Broken pipeline_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (!s.stage_layers.empty()) {
    if (Broken b = stage_layer_rules(spec); !b.what.empty()) return b;
  } else if (spec.model.layers + 2 < s.pipeline * s.virtual_stages) {
    return broken("pipeline",
                  "pipeline: {} * virtual_stages: {} are more stages than layers: {} (and embedding and head)",
                  s.pipeline, s.virtual_stages, spec.model.layers);
  }
  if (s.virtual_stages > 1 && s.schedule == kPlainSchedule) {
    return broken("virtual_stages", "virtual_stages: {} needs a schedule with chunks, e.g. {}; {} has one",
                  s.virtual_stages, kChunkedSchedule, kPlainSchedule);
  }
  const ScheduleRow* row = schedule_in_table(s.schedule);
  if (row != nullptr && row->chunks == 0 && s.pipeline > 1 && s.virtual_stages < 2) {
    return broken("schedule", "schedule: {} needs virtual_stages of at least 2", s.schedule);
  }
  return {};
}

Broken batch_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (s.global_batch % (s.micro_batch * s.data) != 0) {
    return broken("global_batch", "global_batch: {} is not a multiple of micro_batch * data: {} * {} = {}",
                  s.global_batch, s.micro_batch, s.data, s.micro_batch * s.data);
  }
  if (s.micro_batches() > kMostLayerPasses / spec.model.layers) {
    return broken("global_batch", "global_batch: {} makes {} micro-batches of {} layers each, above {} in all",
                  s.global_batch, s.micro_batches(), spec.model.layers, kMostLayerPasses);
  }
  return {};
}

Broken expert_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (!spec.model.moe) return {};
  const Moe& moe = *spec.model.moe;
  Broken b = divides("expert", s.expert, "experts", moe.experts);
  if (b.what.empty()) b = divides("expert_tensor", s.expert_tensor, "moe.feed_forward", moe.feed_forward);
  if (b.what.empty()) b = divides("tensor", s.tensor, "moe.shared_feed_forward", moe.shared_feed_forward);
  if (!b.what.empty()) return b;
  if (row_of(s.sharding).hybrid && s.shard_group > 0) {
    // Number of ranks over which one set of parameter shards is spread; together these ranks must hold every expert.
    const std::int64_t sharers = s.tensor * s.shard_group;
    if (s.expert > sharers || s.expert_tensor > sharers || sharers % (s.expert * s.expert_tensor) != 0) {
      return broken("shard_group", "expert_tensor: {} * expert: {} does not divide tensor * shard_group: {}",
                    s.expert_tensor, s.expert, sharers);
    }
  }
  const std::int64_t ranks = s.tensor * s.context * s.data;
  if (s.expert > ranks || s.expert_tensor > ranks || ranks % (s.expert * s.expert_tensor) != 0) {
    return broken("expert", "expert_tensor: {} * expert: {} does not divide tensor * context * data: {}{}",
                  s.expert_tensor, s.expert, ranks, s.expert_tensor > 1 ? "; try expert_tensor: 1" : "");
  }
  return {};
}

Broken sharding_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (row_of(s.sharding).hybrid) {
    if (Broken b = in_range({{"shard_group", s.shard_group, 1, kMostRanks}}); !b.what.empty()) return b;
    return divides("shard_group", s.shard_group, "data * context", s.data * s.context);
  }
  if (!s.parameter_server) return {};
  const ParameterServer& p = *s.parameter_server;
  Broken b = in_range({{"parameter_server.servers", p.servers, 1, kMostRanks},
                       {"parameter_server.staleness", p.staleness, 0, 1'000'000},
                       {"parameter_server.replicas", p.replicas, 1, p.servers},
                       {"parameter_server.snapshot_every", p.snapshot_every, 0, 1'000'000'000}});
  if (!b.what.empty() || p.colocated) return b;
  const std::int64_t workers = (spec.gpus - 1) / spec.cluster.gpus_per_node + 1, nodes = workers + p.servers;
  if (nodes <= spec.cluster.nodes) return {};
  return broken("parameter_server.colocated",
                "parameter_server: {} servers on machines of their own beside {} of workers are more than the "
                "cluster's {} nodes; give cluster.nodes: {} with gpus: {}, or colocated: true",
                p.servers, workers, spec.cluster.nodes, nodes, spec.gpus);
}

Broken precision_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Gpu& gpu = spec.cluster.gpu;
  const bool micro_scaled = s.precision == Precision::mxfp8 || s.precision == Precision::nvfp4;
  const bool early_nvidia = gpu.compute_capability > 0 && gpu.compute_capability < 100;
  const bool early_amd = gpu.architecture == Architecture::cdna2 || gpu.architecture == Architecture::cdna3;
  if (micro_scaled && (early_nvidia || early_amd)) {
    return broken("precision", "precision: {} needs {}; {} has none: choose fp8 or bf16", name_of(s.precision),
                  early_amd ? "CDNA 4" : "Blackwell", gpu.id);
  }
  try {
    if (!gpu.tflops.empty()) static_cast<void>(peak_flops(gpu, s.precision));
  } catch (const Error& e) {
    return broken("precision", "precision: {}", e.what());
  }
  const Precision g = s.gradient_precision;
  if (g != Precision::fp32 && g != Precision::fp16 && g != Precision::bf16) {
    return broken("gradient_precision", "gradient_precision: {} is none of fp32, fp16, bf16", name_of(g));
  }
  if (s.keep_16bit_gradients && (storage_bytes(s.precision) != 2 || g != Precision::fp32)) {
    return broken("keep_16bit_gradients",
                  "keep_16bit_gradients: precision: {} with gradient_precision: {} has no 16-bit gradients beside fp32 "
                  "sums; choose bf16 and fp32",
                  name_of(s.precision), name_of(g));
  }
  return {};
}

}  // namespace

Broken rank_order_rules(const Spec& spec) {
  const std::string& order = spec.strategy.rank_order;
  const std::string shown = order.substr(0, sensible::kLongestWord);
  std::vector<std::string_view> rest{"tp", "cp", "dp", "pp", "ep"};
  for (std::size_t start = 0; start <= order.size();) {
    const std::size_t end = std::min(order.find('-', start), order.size());
    const auto found = std::find(rest.begin(), rest.end(), std::string_view(order).substr(start, end - start));
    if (found == rest.end())
      return broken("rank_order", "rank_order: {} is not tp, cp, dp, pp and perhaps ep, each once, joined by -", shown);
    rest.erase(found);
    start = end + 1;
  }
  const bool complete = rest.empty() || (rest.size() == 1 && rest.front() == "ep");
  return complete ? Broken{} : broken("rank_order", "rank_order: {} lacks {}", shown, rest.front());
}

// Checks for values that mean nothing together. These pairs of options are the rows of Limit::spec in the table of
// rejected combinations (combinations.h).
static Broken pair_rules(const Spec& spec) {
  const Pair* pair = first_limit(spec, Limit::spec);
  return pair == nullptr ? Broken{} : Broken{refused_key(spec, *pair), refusal(spec, *pair)};
}

// Checks the shapes of the second model as those of the model that trains are checked.
static Broken second_model_rules(const Spec& spec) {
  if (!spec.second) return {};
  Broken b =
      first_of(second_spec(spec), model_rules, tensor_rules, sequence_rules, pipeline_rules, expert_rules, batch_rules);
  if (!b.what.empty()) b.what = fmt::format("{}: {}", name_of(spec.second->role), b.what);
  return b;
}

Broken first_broken(const Spec& spec) {
  return first_of(spec, generation_rules, quantise_rules, second_rules, model_rules, range_rules, gpu_rules,
                  cluster_rules, network_rules, trouble_rules, software_rules, tensor_rules, sequence_rules,
                  document_rules, image_rules, frozen_rules, unit_rules, checkpoint_rules, pipeline_rules, expert_rules,
                  sharding_rules, batch_rules, own_strategy_rules, second_model_rules, feature_rules, schedule_rules,
                  precision_rules, offload_rules, rank_order_rules, pair_rules);
}

}  // namespace orrery
