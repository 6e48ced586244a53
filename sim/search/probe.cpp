#include "sim/search/probe.h"

#include <algorithm>
#include <map>

#include "models/layers/blocks.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/search/space.h"

namespace orrery {

LayerKey kind_of(const Spec& spec, std::int64_t layer) {
  const bool experts = has_experts(spec.model, layer);
  const bool own = experts && !spec.model.moe->loads_file.empty();
  return {layer_kind(spec.model, layer),
          has_window(spec.model, layer),
          experts,
          is_hashed(spec.model, layer),
          layer % 2,
          own ? layer : 0};
}

// The number of leading layers that contain every type of layer, each type twice where the model has two such layers.
static std::int64_t layers_to_look_at(const Spec& spec) {
  std::map<LayerKey, std::int64_t> seen;
  std::int64_t needed = 1;
  for (std::int64_t i = 0; i < spec.model.layers; ++i) {
    if (++seen[kind_of(spec, i)] <= 2) needed = i + 1;
  }
  return needed;
}

Spec probe_spec(const Spec& base, const ModelCostKey& key) {
  Spec spec = base;
  spec.origins.clear();
  spec.cluster.failures.reset();
  spec.cluster.stragglers.clear();
  spec.cluster.straggler_share = 0;
  // A lower bound may leave out causes that only lengthen a step.
  if (spec.cluster.variation) spec.cluster.variation->kernels = 0;
  if (spec.cluster.network) {
    spec.cluster.network->site_nodes = 0;
    spec.cluster.network->faults.clear();
    spec.cluster.network->fault_share = 0;
    spec.cluster.network->site_sizes.clear();
    spec.cluster.network->site_links.clear();
    spec.cluster.network->latency_us = 0;
    spec.cluster.network->burst_ms = 0;
    spec.cluster.network->hash_seed.reset();
    if (spec.cluster.network->routing == Routing::pinned) spec.cluster.network->routing = Routing::adaptive;
  }
  Strategy& s = spec.strategy;
  spec.model.layers = layers_to_look_at(base);
  if (base.second) spec.second->model.layers = layers_to_look_at(second_spec(base));
  // A lower bound may leave out the loss of hidden states and the second model's way from the host, which only add work
  // and memory.
  if (base.second) spec.second->features = {}, spec.second->offload = false;
  if (key.sequence > 0) spec.sequence = key.sequence;
  s.tensor = key.tensor;
  s.context = key.context;
  set_context_kind(s, key.context_kind);
  s.expert = key.expert;
  s.expert_tensor = key.expert_tensor;
  s.sequence_parallel = key.sequence_parallel;
  s.pipeline = s.virtual_stages = 1;
  s.schedule = key.splits_backward ? kPlainSplitSchedule : kPlainSchedule;
  s.stage_layers.clear();
  s.data = key.data;
  s.rank_order = "tp-cp-dp-pp";
  s.sharding = key.sharding;
  s.shard_group = row_of(key.sharding).hybrid ? key.data * key.context : 0;
  s.micro_batch = key.micro_batch;
  s.global_batch = key.micro_batch * key.data;
  s.recompute = recompute_of(key.recompute, spec.software);
  s.partition_activations = s.partition_activations && s.recompute.layer && s.tensor > 1 && !s.sequence_parallel;
  if (key.sharding == Sharding::none) s.offload = {};
  s.offload.delayed_update = false;
  if (key.host_gradients) s.offload.optimizer = s.offload.gradients = MemoryTier::host;
  // Copies that some frameworks make of gathered weights (UnitCopies::parameters) are left out: if weights stay
  // gathered from forward to backward, there are none, and the costs must be lower bounds.
  UnitCopies& copies = spec.software.communication.unit_copies;
  if (copies == UnitCopies::parameters) copies = UnitCopies::none;
  s.overlap = {.tensor = key.overlap_tensor, .expert = key.overlap_expert};
  spec.gpus = s.gpus();
  spec.cluster.nodes = std::max(spec.cluster.nodes, ceil_div(spec.gpus, spec.cluster.gpus_per_node));
  return spec;
}

}  // namespace orrery
