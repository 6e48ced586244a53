#include "sim/search/host.h"

#include <algorithm>

#include "models/spec/sharding.h"
#include "sim/cost/host_work.h"

namespace orrery {
namespace {

Picoseconds at_rate(double bytes, double rate) {
  return rate > 0 ? static_cast<Picoseconds>(bytes / rate * kPicosecondsPerSecond) : 0;
}

// Bytes that the optimizer's moments take for each parameter.
Bytes moment_bytes(const Optimizer& o) { return o.moments() * o.moment_bytes; }

std::int64_t node_ranks(const Space& space) {
  return std::min<std::int64_t>(space.base().cluster.gpus_per_node, space.gpus());
}

// Bytes of offloaded states (weights, gradients, optimizer states) that a rank of the stage moves to and from the host
// in a step.
HostLoad host_moves(const Strategy& s, const SearchCell& cell, const StageWeights& stage, const Offload& away) {
  const ShardingRow& row = row_of(cell.memory_plan.sharding);
  const std::int64_t in_layers = own_elements(cell, {.elements = stage.layer_elements});
  const auto mine = static_cast<double>(own_elements(cell, stage)), m = static_cast<double>(cell.micro_batches);
  const auto gradients = mine * static_cast<double>(storage_bytes(s.gradient_precision));
  const auto width = static_cast<double>(row.fp32_shards ? s.optimizer.master_bytes : storage_bytes(s.precision));
  const Bytes each = s.optimizer.master_bytes + moment_bytes(s.optimizer);
  // If weights stay gathered from forward to backward, several micro-batches may share one gather, so that only one
  // gather per step is certain and counted.
  const double gathers = (row.reshards_after_forward ? 2 * m : 1) * static_cast<double>(in_layers) * width;
  const bool host_gradients = away.gradients != MemoryTier::device,
             host_parameters = away.parameters != MemoryTier::device;
  HostLoad load;
  load.down = (host_gradients ? m : 1) * gradients;
  load.up = (host_gradients ? (m - 1) * gradients : 0) + (host_parameters ? gathers : mine * width);
  load.swapped = behind_host(away.optimizer) ? mine * static_cast<double>(each) : 0;
  const auto moves = [&](MemoryTier tier, double read, double written) {
    if (!behind_host(tier)) return;
    load.read[index_of(tier)] += read;
    load.written[index_of(tier)] += written;
  };
  moves(away.optimizer, load.swapped, load.swapped);
  moves(away.gradients, m * gradients, m * gradients);
  moves(away.parameters, gathers, mine * width);
  return load;
}

// The time in which all devices that share a PCIe switch each move `down` bytes to the host and `up` bytes from it over
// the shared link; both directions run at the same time.
Picoseconds through_link(const Space& space, double down, double up) {
  const Cluster& c = space.base().cluster;
  const auto sharers =
      std::clamp<std::int64_t>(c.gpus_per_pcie_switch, 1, std::max<std::int64_t>(1, node_ranks(space)));
  return at_rate(static_cast<double>(sharers) * std::max(down, up), host_rates(c).link);
}

// The time in which every rank of a node reads `read` bytes from, and writes `written` bytes to, one memory tier behind
// the host (disks).
Picoseconds through_store(const Space& space, MemoryTier tier, double read, double written) {
  const StoreRates rates = host_rates(space.base().cluster).stores[index_of(tier)];
  const auto node = static_cast<double>(node_ranks(space));
  return std::max(at_rate(node * read, rates.read), at_rate(node * written, rates.write));
}

// Bytes of activations that a stage offloads for one micro-batch.
Bytes bytes_left(const CellWork& work, std::int64_t s) {
  Bytes sum = 0;
  for (std::int64_t c = 0; c < work.chunks; ++c) sum += work.chunk_works[s * work.chunks + c].left;
  return sum;
}

}  // namespace

// With gradient clipping no rank may update before all gradients are complete, so that the host's update comes after
// the last gradient. The node's processors update the parameters of all ranks of the node.
HostLoad host_load(const Space& space, const SearchCell& cell, const StageWeights& stage) {
  if (cell.memory_plan.offload == "none") return {};
  const Spec& spec = space.base();
  const Strategy& s = spec.strategy;
  Offload away = s.offload;
  set_offload(away, cell.memory_plan.offload);
  HostLoad load = host_moves(s, cell, stage, away);
  const HostRates rates = host_rates(spec.cluster);
  const Update update = {.elements = own_elements(cell, stage),
                         .gradient = storage_bytes(s.gradient_precision),
                         .master = s.optimizer.master_bytes,
                         .moment = s.optimizer.moment_bytes,
                         .forward = 0,
                         .moments = s.optimizer.moments()};
  const double bytes = cost_of(update, storage_bytes(s.precision)).bytes;
  const bool together = s.clip > 0 && !away.delayed_update;
  const auto node = static_cast<double>(node_ranks(space));
  const double ranks = together ? node : 1;
  const Picoseconds computes = at_rate(ranks * bytes, rates.update);
  const StoreRates& states = rates.stores[index_of(away.optimizer)];
  const Picoseconds swaps = at_rate(ranks * load.swapped, std::min(states.read, states.write));
  load.update = away.delayed_update ? 0 : std::max(computes, swaps);
  load.beside = std::max(at_rate(node * bytes, rates.update), through_link(space, load.down, load.up));
  for (const MemoryTier tier : kTiersBeyond)
    load.beside =
        std::max(load.beside, through_store(space, tier, load.read[index_of(tier)], load.written[index_of(tier)]));
  return load;
}

Picoseconds through_host(const Space& space, const CellWork& work, const HostLoad& states) {
  const MemoryPlan& memory_plan = work.cell.memory_plan;
  if (memory_plan.activations == "none") return states.beside;
  Bytes least = bytes_left(work, 0);
  for (std::int64_t s = 1; s < std::ssize(work.stages); ++s) least = std::min(least, bytes_left(work, s));
  const double moved = static_cast<double>(least) * static_cast<double>(work.cell.micro_batches);
  const Picoseconds time = std::max(states.beside, through_link(space, states.down + moved, states.up + moved));
  const MemoryTier tier = tier_in_spec(memory_plan.activations).value_or(MemoryTier::host);
  if (!behind_host(tier)) return time;
  return std::max(
      time, through_store(space, tier, states.read[index_of(tier)] + moved, states.written[index_of(tier)] + moved));
}

bool lacks_host(const Space& space, const CellWork& work, Bytes activations) {
  const Spec& spec = space.base();
  if (!spec.cluster.host || spec.cluster.host->dram_bytes == 0) return false;
  Offload away;
  set_offload(away, work.cell.memory_plan.offload);
  const Strategy& s = spec.strategy;
  const bool fp32_shards = row_of(work.cell.memory_plan.sharding).fp32_shards;
  Bytes each = 0;
  if (away.optimizer == MemoryTier::host) each += s.optimizer.master_bytes + moment_bytes(s.optimizer);
  if (away.gradients == MemoryTier::host) each += storage_bytes(s.gradient_precision);
  if (away.parameters == MemoryTier::host && !fp32_shards) each += storage_bytes(s.precision);
  const Bytes least = own_elements(work.cell, fewest_elements(work)) * each + activations;
  return least * node_ranks(space) > spec.cluster.host->dram_bytes;
}

}  // namespace orrery
