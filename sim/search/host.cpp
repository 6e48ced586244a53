// Bounds: transfers to and from the host and disks, updates on the host, and the memory that the host needs.
#include <algorithm>

#include "models/layers/blocks.h"
#include "models/spec/sharding.h"
#include "sim/cost/host_work.h"
#include "sim/search/bounds.h"

namespace orrery {
namespace {

Picoseconds at_rate(double bytes, double rate) {
  return rate > 0 ? static_cast<Picoseconds>(bytes / rate * kPicosecondsPerSecond) : 0;
}

}  // namespace

Bounds::Kind Bounds::like(Sharding sharding) const {
  const ShardingRow& row = row_of(sharding);
  return {unit_gradients(space_.base(), row) || row.shards_parameters ? row.bounds : Sharding::none};
}

Bounds::Kind Bounds::like(const Recipe& cell) const {
  Offload away;
  set_offload(away, cell.offload);
  if (away.gradients == Device::none) return like(cell.sharding);
  return {row_of(cell.sharding).with_host_gradients, true};
}

bool Bounds::reduces_units(const Recipe& cell) const {
  return like(cell).host_gradients || unit_gradients(space_.base(), row_of(cell.sharding));
}

// All kinds (Kind) that the strategies of a layout may have. Gradients on the host make a difference where gradients
// are not reduced unit by unit on the device, or where no other rank has a part of them.
std::vector<Bounds::Kind> Bounds::kinds() const {
  std::vector<Kind> result;
  for (const ShardingRow& row : sharding_rows()) {
    if (row.bounds != row.kind || row.master || row.servers) continue;
    const Sharding sharding = row.kind;
    const bool own = like(sharding).sharding == sharding, alone = layout_.replicas() == 1;
    if (own) result.push_back({sharding});
    if ((!own || alone) && (alone || sharding != Sharding::none) && space_.offloads_gradients())
      result.push_back({sharding, true});
  }
  return result;
}

// A stage with the fewest elements, expert elements and layer elements of any stage.
Bounds::Stage Bounds::fewest_elements() const {
  Stage least = stages_.front();
  for (const Stage& s : stages_) {
    least.elements = std::min(least.elements, s.elements);
    least.expert_elements = std::min(least.expert_elements, s.expert_elements);
    least.layer_elements = std::min(least.layer_elements, s.layer_elements);
  }
  return least;
}

// Bytes of states that a rank that holds the stage moves in a step.
Bounds::HostLoad Bounds::host_moves(const Stage& stage, const Offload& away) const {
  const Strategy& s = space_.base().strategy;
  const ShardingRow& row = row_of(cell_.sharding);
  Stage layers;
  layers.elements = stage.layer_elements;
  const auto mine = static_cast<double>(own(stage)), m = static_cast<double>(micro_batches_);
  const auto gradients = mine * static_cast<double>(storage_bytes(s.gradient_precision));
  const auto width = static_cast<double>(row.fp32_shards ? s.optimizer.master_bytes : storage_bytes(s.precision));
  const Bytes each = s.optimizer.master_bytes + 2 * moment_bytes();
  // Weights that stay gathered from forward to backward may do for several micro-batches.
  const double gathers = (row.reshards_after_forward ? 2 * m : 1) * static_cast<double>(own(layers)) * width;
  const bool host_gradients = away.gradients != Device::none, host_parameters = away.parameters != Device::none;
  HostLoad load;
  load.down = (host_gradients ? m : 1) * gradients;
  load.up = (host_gradients ? (m - 1) * gradients : 0) + (host_parameters ? gathers : mine * width);
  load.swapped = away.optimizer == Device::nvme ? mine * static_cast<double>(each) : 0;
  load.read = load.written = load.swapped + (away.gradients == Device::nvme ? m * gradients : 0);
  if (away.parameters == Device::nvme) load.read += gathers;
  if (away.parameters == Device::nvme) load.written += mine * width;
  return load;
}

// Bytes per parameter of each of the two moments.
Bytes Bounds::moment_bytes() const {
  const Optimizer& o = space_.base().strategy.optimizer;
  return o.kind == OptimizerKind::sgd ? 0 : o.moment_bytes;
}

// Load of a rank that holds the stage, beside other ranks of the node that hold no less. With clipping no rank updates
// before all gradients are there, and then the node updates the parameters of all its ranks.
Bounds::HostLoad Bounds::host_load(const Stage& stage) const {
  if (cell_.offload == "none") return {};
  const Spec& spec = space_.base();
  const Strategy& s = spec.strategy;
  Offload away = s.offload;
  set_offload(away, cell_.offload);
  HostLoad load = host_moves(stage, away);
  const HostRates rates = host_rates(spec.cluster);
  const Update update = {.elements = own(stage),
                         .gradient = storage_bytes(s.gradient_precision),
                         .master = s.optimizer.master_bytes,
                         .moment = s.optimizer.moment_bytes,
                         .forward = 0,
                         .moments = moment_bytes() > 0 ? 2 : 0};
  const double bytes = cost_of(update, storage_bytes(s.precision)).bytes;
  const bool together = s.clip > 0 && !away.delayed_update;
  const auto node = static_cast<double>(std::min<std::int64_t>(spec.cluster.gpus_per_node, space_.gpus()));
  const double ranks = together ? node : 1;
  const Picoseconds computes = at_rate(ranks * bytes, rates.update);
  const Picoseconds swaps = at_rate(ranks * load.swapped, std::min(rates.read, rates.write));
  load.update = away.delayed_update ? 0 : std::max(computes, swaps);
  load.beside = std::max({at_rate(node * bytes, rates.update), at_rate(node * load.read, rates.read),
                          at_rate(node * load.written, rates.write), through_link(load.down, load.up)});
  return load;
}

// Time for both directions of the link that the devices of a PCIe switch share.
Picoseconds Bounds::through_link(double down, double up) const {
  const Cluster& c = space_.base().cluster;
  const std::int64_t most = std::max<std::int64_t>(1, std::min<std::int64_t>(c.gpus_per_node, space_.gpus()));
  const auto sharers = std::clamp<std::int64_t>(c.gpus_per_pcie_switch, 1, most);
  return at_rate(static_cast<double>(sharers) * std::max(down, up), host_rates(c).link);
}

// Bytes of a stage's activations that leave in a micro-batch.
Bytes Bounds::left(std::int64_t s) const {
  Bytes sum = 0;
  for (std::int64_t c = 0; c < chunks_; ++c) sum += chunk_left_[s * chunks_ + c];
  return sum;
}

// Time of the transfers to and from the host with the activations of the cell, on the stage that moves the fewest bytes
// of them.
Picoseconds Bounds::through_host(const HostLoad& states) const {
  if (cell_.activations == "none") return states.beside;
  Bytes least = left(0);
  for (std::size_t s = 1; s < stages_.size(); ++s) least = std::min(least, left(static_cast<std::int64_t>(s)));
  const double moved = static_cast<double>(least) * static_cast<double>(micro_batches_);
  Picoseconds time = std::max(states.beside, through_link(states.down + moved, states.up + moved));
  if (cell_.activations != "nvme") return time;
  const Cluster& c = space_.base().cluster;
  const HostRates rates = host_rates(c);
  const auto node = static_cast<double>(std::min<std::int64_t>(c.gpus_per_node, space_.gpus()));
  return std::max(
      {time, at_rate(node * (states.read + moved), rates.read), at_rate(node * (states.written + moved), rates.write)});
}

// Whether the ranks of a node keep more on their host than it has.
bool Bounds::lacks_host() {
  const Spec& spec = space_.base();
  if (!spec.cluster.host || spec.cluster.host->dram_bytes == 0) return false;
  Offload away;
  set_offload(away, cell_.offload);
  const Strategy& s = spec.strategy;
  Bytes each = 0;
  if (away.optimizer == Device::cpu) each += s.optimizer.master_bytes + 2 * moment_bytes();
  if (away.gradients == Device::cpu) each += storage_bytes(s.gradient_precision);
  if (away.parameters == Device::cpu && !row_of(cell_.sharding).fp32_shards) each += storage_bytes(s.precision);
  Bytes least = own(fewest_elements()) * each;
  if (cell_.activations == "cpu" && cell_.activation_layers != kAsNeeded) {
    std::optional<Bytes> activations;
    for (std::size_t st = 0; st < stages_.size(); ++st) {
      Bytes sum = 0;
      const auto at = static_cast<std::int64_t>(st);
      for (std::int64_t c = 0; c < chunks_; ++c) sum += alive(at, c) * chunk_left_[at * chunks_ + c];
      activations = std::min(activations.value_or(sum), sum);
    }
    least += activations.value_or(0);
  }
  return least * std::min<std::int64_t>(spec.cluster.gpus_per_node, space_.gpus()) > spec.cluster.host->dram_bytes;
}

}  // namespace orrery
