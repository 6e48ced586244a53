#include "sim/page/words.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/load/open_spec.h"
#include "models/spec/sharding.h"
#include "sim/print/text.h"
#include "sim/report/report_parts.h"

namespace orrery {
namespace {

std::string sharded_words(const Strategy& s) {
  const ShardingRow& row = row_of(s.sharding);
  const std::string name(row.name);
  if (row.master) return fmt::format("one of them holds the weights and updates them ({})", name);
  if (row.servers) return fmt::format("separate ranks hold the weights and update them ({})", name);
  if (row.shards_parameters)
    return fmt::format("weights, gradients and optimizer states are dealt to them and gathered when needed ({})", name);
  if (row.shards_gradients) return fmt::format("gradients and optimizer states are dealt to them ({})", name);
  if (row.shards_optimizer) return fmt::format("the optimizer's states are dealt to them ({})", name);
  return "each holds all of its model's states";
}

std::string batch_words(const Spec& spec) {
  const Strategy& s = spec.strategy;
  return fmt::format("A step trains on {} sequence{} of {} tokens, in {} micro-batch{} of {} a replica.",
                     grouped(static_cast<double>(s.global_batch)), s.global_batch == 1 ? "" : "s",
                     grouped(static_cast<double>(spec.sequence)), grouped(static_cast<double>(s.micro_batches())),
                     s.micro_batches() == 1 ? "" : "es", s.micro_batch);
}

std::string offload_words(const Offload& o) {
  std::vector<std::string> parts;
  for (const auto& [name, tier] :
       {std::pair("parameters", o.parameters), std::pair("gradients", o.gradients),
        std::pair("optimizer states", o.optimizer), std::pair("activations", o.activations)}) {
    if (tier != MemoryTier::device) parts.push_back(fmt::format("{} in {}", name, row_of(tier).label));
  }
  return fmt::format("Kept outside the GPUs: {}.", fmt::join(parts, ", "));
}

constexpr std::array<std::string_view, 22> kDeciding = {
    "sequence",
    "gpus",
    "software.profile",
    "strategy.tensor",
    "strategy.pipeline",
    "strategy.context",
    "strategy.expert",
    "strategy.data",
    "strategy.schedule",
    "strategy.virtual_stages",
    "strategy.sharding",
    "strategy.sequence_parallel",
    "strategy.micro_batch",
    "strategy.global_batch",
    "strategy.precision",
    "strategy.gradient_precision",
    "strategy.optimizer.name",
    "strategy.recompute",
    "strategy.attention",
    "strategy.overlap.gradient_reduce",
    "strategy.overlap.parameter_gather",
    "strategy.overlap.tensor",
};

Table origin_columns() {
  return {{{"key", "", Align::left}, {"value", "", Align::left}, {"from", "", Align::left}}, {}};
}

// The second model with its part: "teacher (llama-3.1-8b)"; "reference", which is a copy of the model that trains.
std::string second_name(const SecondModel& second) {
  const std::string role(name_of(second.role));
  return second.role == SecondModel::Role::teacher ? fmt::format("{} ({})", role, second.model.name) : role;
}

// Returns a sentence on what the second model is for, and where it runs.
std::string second_words(const Spec& spec) {
  const SecondModel& second = *spec.second;
  const std::string loss =
      second.role == SecondModel::Role::teacher
          ? fmt::format(
                "the student learns from its logits: the loss is {} x the divergence from them at temperature {} "
                "and {} x cross-entropy{}",
                second.divergence, second.temperature, second.cross_entropy,
                second.features.student.empty() ? "" : ", and the distance of hidden states")
          : fmt::format("the policy learns to prefer chosen samples to rejected ones more than it does (DPO, beta {})",
                        second.beta);
  return fmt::format("A frozen {} of {} parameters runs forward alone{}; {}.", second_name(second),
                     count_text(static_cast<double>(parameter_count(second.model, spec.sequence))),
                     has_second_apart(spec) ? second_layout_text(spec)
                     : second.offload       ? " beside it, its weights in host memory"
                                            : " beside it on the same GPUs",
                     loss);
}

std::string from_text(const Origin& o) { return o.asked.empty() ? o.from : fmt::format("{} ({})", o.from, o.asked); }

}  // namespace

std::string title_words(const Spec& spec) {
  const std::string beside = spec.second ? fmt::format(" beside a frozen {}", second_name(*spec.second)) : "";
  return fmt::format("{}{} on {} x {}", spec.model.name, beside, grouped(static_cast<double>(spec.gpus)),
                     spec.cluster.gpu.name);
}

std::vector<std::string> strategy_words(const Spec& spec) {
  const Strategy& s = spec.strategy;
  std::vector<std::string> words = {batch_words(spec)};
  if (spec.second) words.push_back(second_words(spec));
  if (s.tensor > 1)
    words.push_back(fmt::format("Every layer is cut over {} GPUs (tensor parallelism{}).", s.tensor,
                                s.sequence_parallel ? ", with sequence parallelism" : ""));
  if (s.context > 1)
    words.push_back(
        fmt::format("Every sequence is cut over {} GPUs (context parallelism, {}).", s.context, s.context_kind));
  if (s.pipeline > 1)
    words.push_back(fmt::format("The layers are dealt to a pipeline of {} stages{} (schedule {}).", s.pipeline,
                                s.virtual_stages > 1 ? fmt::format(", {} parts each", s.virtual_stages) : "",
                                s.schedule));
  if (s.expert > 1)
    words.push_back(fmt::format("The experts of a layer are dealt to {} GPUs (expert parallelism).", s.expert));
  if (s.data > 1)
    words.push_back(fmt::format("{} replicas share the batch (data parallelism); {}.",
                                grouped(static_cast<double>(s.data)), sharded_words(s)));
  if (s.recompute.any())
    words.push_back(s.recompute.all_layers()
                        ? "Activations are computed again in backward instead of kept (full recomputation)."
                        : "Some activations are computed again in backward instead of kept.");
  if (s.offload.any()) words.push_back(offload_words(s.offload));
  words.push_back(fmt::format("Numbers are {}, the software is {}.", name_of(s.precision), spec.software.name));
  return words;
}

Table machine_table(const Spec& spec) {
  const Cluster& c = spec.cluster;
  Table t{{{"", "", Align::left}, {"", "", Align::left}}, {}};
  const auto add = [&](std::string_view name, std::string value) {
    t.rows.push_back({std::string(name), std::move(value)});
  };
  const std::int64_t nodes = ceil_div(spec.gpus, std::max(1, c.gpus_per_node));
  add("GPUs", fmt::format("{} x {}, {} each at {} GB/s", grouped(static_cast<double>(spec.gpus)), c.gpu.name,
                          memory_text(static_cast<double>(c.gpu.memory_bytes)), grouped(c.gpu.memory_GBps)));
  if (const auto rate = c.gpu.tflops.find(std::string(name_of(spec.strategy.precision))); rate != c.gpu.tflops.end())
    add("peak rate of a GPU", fmt::format("{:.4g} TFLOP/s of {}", rate->second, rate->first));
  add("nodes",
      fmt::format("{}{}, {} GPUs each; the cluster has {}", grouped(static_cast<double>(nodes)),
                  c.node_id.empty() ? "" : " x " + c.node_id, c.gpus_per_node, grouped(static_cast<double>(c.nodes))));
  if (c.nvlink_domain > 1)
    add("links in a node",
        fmt::format("{} among {} GPUs, {} GB/s each way a GPU", c.gpu.link_GBps > 0 ? "xGMI" : "NVLink",
                    c.nvlink_domain, grouped(c.gpu.nvlink_GBps)));
  else
    add("links in a node", fmt::format("PCIe, {:.3g} GB/s each way", c.gpu.pcie_GBps));
  if (c.nics > 0) add("network", fmt::format("{} x {:.4g} Gbit/s a node, {}", c.nics, c.nic_Gbps, name_of(c.fabric)));
  if (c.oversubscription > 1)
    add("oversubscription", fmt::format("{:.3g} to 1 above {} GPUs", c.oversubscription, c.oversubscribed_above_gpus));
  if (const auto& n = c.network; n && n->leaf_nodes > 0)
    add("leaf switches", fmt::format("{}, {} nodes and {} uplinks of {:.4g} Gbit/s each, {} routing{}",
                                     name_of(n->kind), n->leaf_nodes, n->leaf_uplinks, n->leaf_Gbps,
                                     name_of(n->routing), n->planes > 1 ? fmt::format(", {} planes", n->planes) : ""));
  if (const auto& n = c.network; n && n->kind == NetworkKind::dragonfly)
    add("groups of leaves", fmt::format("{} leaves each, of {} links of {:.4g} Gbit/s to other groups",
                                        n->groups.leaves, n->groups.links, n->groups.Gbps));
  if (const auto& n = c.network; n && n->kind == NetworkKind::graph)
    add("switches", fmt::format("{}, joined by {} cables", n->graph.switches, n->graph.cables.size()));
  if (const auto& n = c.network; n && n->kind == NetworkKind::torus)
    add("torus", fmt::format("{} nodes, links of {:.4g} Gbit/s{}", fmt::join(n->torus.shape, " x "), n->torus.Gbps,
                             n->torus.wraps ? "" : ", rows are not closed"));
  if (const auto& n = c.network; n && n->site_nodes > 0)
    add("sites", fmt::format("{} nodes each, {:.4g} Gbit/s and {:.3g} ms to the others", n->site_nodes, n->site_Gbps,
                             n->site_ms));
  if (const auto& n = c.network; n && n->flap_every_s > 0)
    add("outages of links", fmt::format("one of {:.3g} s every {:.4g} s", n->flap_down_s, n->flap_every_s));
  if (const auto& n = c.network; n && !n->site_sizes.empty())
    add("sites", fmt::format("{} nodes, {} links between them", fmt::join(n->site_sizes, ", "), n->site_links.size()));
  if (const auto& n = c.network; n && (!n->faults.empty() || n->fault_share > 0))
    add("slow links", n->faults.empty() ? fmt::format("{:.3g} % of NICs", 100 * n->fault_share)
                                        : fmt::format("{} named", n->faults.size()));
  if (c.host)
    add("memory of a host",
        fmt::format("{}, {:.4g} GB/s", memory_text(static_cast<double>(c.host->dram_bytes)), c.host->dram_GBps));
  for (const MemoryTier tier : kTiersBeyond) {
    if (const std::optional<Store>& store = store_of(c, tier); store && store->bytes > 0)
      add(row_of(tier).label,
          fmt::format("{} a node, {:.4g} GB/s read, {:.4g} GB/s written",
                      volume_text(static_cast<double>(store->bytes)), store->read_GBps, store->write_GBps));
  }
  if (c.power_kW > 0)
    add("power", fmt::format("{:.3g} kW a node under full load, {} kW in all", c.power_kW,
                             grouped(c.power_kW * static_cast<double>(nodes))));
  return t;
}

Table deciding_defaults(const Spec& spec) {
  Table t = origin_columns();
  for (const Origin& o : spec.origins) {
    if (!is_given(o) && std::find(kDeciding.begin(), kDeciding.end(), o.key) != kDeciding.end())
      t.rows.push_back({o.key, o.value.empty() ? "-" : o.value, from_text(o)});
  }
  return t;
}

Table origins_table(const Spec& spec, bool given) {
  Table t = origin_columns();
  for (const Origin& o : spec.origins) {
    if (is_given(o) == given) t.rows.push_back({o.key, o.value.empty() ? "-" : o.value, from_text(o)});
  }
  return t;
}

std::string words_of(std::string_view name) {
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string_view meaning_of(TimeKind kind) {
  static constexpr std::array<std::string_view, kTimeKinds> kMeanings = {
      "kernels of forward and backward",
      "forward again, of activations that were not kept",
      "waiting for the GPUs that share a layer",
      "waiting for the GPUs that share a sequence",
      "waiting for tokens on their way to and from experts",
      "waiting for what a pipeline stage sends",
      "waiting for gradients or weights of the replicas",
      "waiting for copies to the host or disks",
      "norm of the gradients and update of the weights",
      "a pipeline stage has no work yet, or none any more",
      "waiting for another rank of the same stage",
      "waiting for the host to launch kernels",
      "everything else"};
  return kMeanings[static_cast<std::size_t>(kind)];
}

}  // namespace orrery
