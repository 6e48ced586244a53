// This file reads which tensors are offloaded to which memory tiers, and has the rules about the memory and links that
// a machine needs for them.
#include "models/base/names.h"
#include "models/load/features.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kOffloadKeys[] = {
    {"optimizer", "place of master weights and moments; the host updates", "cpu", kTierWords},
    {"parameters", "place of the weights between uses", "cpu", kTierWords},
    {"gradients", "place of gradient shards", "cpu", kTierWords},
    {"activations", "place of kept activations", "cpu", kTierWords},
    {"tiling", "parts that each weight is cut into, gathered one by one (ZeRO-Infinity)", "4"},
};
constexpr SpecKey kOffloadedOptimizerKeys[] = {
    {"device", "place of master weights and moments", "nvme", kTierWords},
    {"delayed_update", "the update runs beside the next step (ZeRO-Offload)", "true"},
    {"tile", "elements that are updated and uploaded at a time", "128Mi"},
};
constexpr SpecKey kOffloadedActivationKeys[] = {
    {"device", "place of kept activations", "cpu", kTierWords},
    {"layers", "layers of each stage whose activations leave", "4", "", "all"},
};

void take_device(const SpecSection& section, std::string_view key, MemoryTier& device) {
  const auto find = [](std::string_view word) {
    if (const auto tier = tier_in_spec(word)) return *tier;
    std::vector<std::string_view> known;
    for (const MemoryTierRow& row : kMemoryTiers) known.push_back(row.in_spec);
    throw Error(unknown_name("device", word, known));
  };
  section.take_named(
      key, device, find, [](MemoryTier d) { return row_of(d).in_spec; }, "default");
}

}  // namespace

void read_offload(const SpecSection& section, Offload& o) {
  SpecReader& reader = section.reader();
  const SpecSection map(reader, section.find("offload"), "strategy.offload", kOffloadKeys);
  const SpecSection optimizer(reader, map.find("optimizer"), "strategy.offload.optimizer", kOffloadedOptimizerKeys,
                              "device");
  take_device(optimizer, "device", o.optimizer);
  optimizer.take("delayed_update", o.delayed_update);
  optimizer.take("tile", o.tile);
  take_device(map, "parameters", o.parameters);
  take_device(map, "gradients", o.gradients);
  const SpecSection activations(reader, map.find("activations"), "strategy.offload.activations",
                                kOffloadedActivationKeys, "device");
  take_device(activations, "device", o.activations);
  activations.take("layers", o.activation_layers);
  map.take("tiling", o.tiling);
}

Broken offload_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  const Offload& o = s.offload;
  if (o.tile < 1) return broken("offload.optimizer", "offload.optimizer.tile: {} is not at least 1", o.tile);
  // Without a known GPU the spec is for an execution on the machine at hand, whose memory and links the rules cannot
  // know.
  if (spec.cluster.gpu.memory_bytes == 0) return {};
  const bool moves = o.any() || (spec.second && spec.second->offload);
  if (moves && spec.cluster.gpu.pcie_GBps <= 0)
    return broken(o.optimizer == MemoryTier::device ? "offload.activations" : "offload.optimizer",
                  "offload: {} has no known link to its host (pcie_GBps is 0 in its file of models/data/gpus); state "
                  "one there, or leave offload out",
                  spec.cluster.gpu.id);
  if (o.optimizer != MemoryTier::device && !spec.cluster.host)
    return broken("offload",
                  "offload.optimizer: needs cluster.host: {{dram_GiB: ..., dram_GBps: ...}}, which {} does not state",
                  spec.cluster.node_id.empty() ? "the cluster" : spec.cluster.node_id);
  for (const MemoryTier tier : {o.optimizer, o.gradients, o.parameters, o.activations}) {
    if (!behind_host(tier) || store_of(spec.cluster, tier)) continue;
    return broken("offload",
                  "offload: {} needs cluster.{}: {{TB: ..., read_GBps: ..., write_GBps: ...}}, which {} does not state",
                  row_of(tier).in_spec, row_of(tier).name,
                  spec.cluster.node_id.empty() ? "the cluster" : spec.cluster.node_id);
  }
  return {};
}

}  // namespace orrery
