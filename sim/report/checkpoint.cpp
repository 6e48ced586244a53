#include "sim/report/checkpoint.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/layout/placement.h"
#include "models/spec/sharding.h"
#include "sim/cost/host_work.h"
#include "sim/report/goodput.h"

namespace orrery {
namespace {

// The bytes that each rank of one class (ranks that do the same) writes for a checkpoint. slot: index of the class.
Bytes bytes_of_rank(const Spec& spec, const Plan& plan, std::uint32_t slot) {
  const Strategy& s = spec.strategy;
  const std::int64_t replicas = s.data * s.context, of_experts = s.tensor * replicas / (s.expert * s.expert_tensor);
  double elements = 0;
  for (const std::uint32_t state : states_of(plan, slot)) {
    for (const PlacedParameter& p : parameters_of(plan, state)) {
      const std::int64_t copies = p.local.experts > 0 ? of_experts : replicas;
      elements += static_cast<double>(p.local.out * p.local.in) / static_cast<double>(copies);
    }
  }
  return static_cast<Bytes>(elements * static_cast<double>(checkpoint_width(spec)));
}

// The rate, in bytes per second, at which a node writes while all nodes of the job do: that of its disks, or its part
// of the shared storage, which its network interfaces limit. A NIC that the training's transfers want all of is shared
// evenly with an asynchronous checkpoint.
double write_rate(const Spec& spec) {
  const Cluster& c = spec.cluster;
  constexpr double kGiga = 1e9;
  if (!spec.strategy.checkpoint->to_storage) return store_of(c, MemoryTier::nvme)->write_GBps * kGiga;
  const auto nodes = static_cast<double>(ceil_div(spec.gpus, static_cast<std::int64_t>(c.gpus_per_node)));
  const bool shares = c.storage_on_backend && spec.strategy.checkpoint->asynchronous;
  const double transport = c.network && c.storage_on_backend ? c.network->efficiency : 1;
  const double nics = c.nics * c.nic_Gbps / 8 * transport / (shares ? 2 : 1);
  const double part = c.storage->write_GBps / nodes;
  return (nics > 0 ? std::min(part, nics) : part) * kGiga;
}

}  // namespace

Bytes checkpoint_width(const Spec& spec) {
  const Optimizer& o = spec.strategy.optimizer;
  const Bytes width = storage_bytes(spec.strategy.precision), moments = o.moments() * o.moment_bytes;
  if (row_of(spec.strategy.sharding).fp32_shards) return o.master_bytes + moments;
  return width + (width < o.master_bytes ? o.master_bytes : 0) + moments;
}

// Sets the shares of a run's time from the stall.
static void find_shares(CheckpointCost& cost, const Spec& spec, Seconds step) {
  const Checkpoint& c = *spec.strategy.checkpoint;
  const std::int64_t in_node = std::min<std::int64_t>(spec.gpus, spec.cluster.gpus_per_node);
  const Seconds between = static_cast<double>(c.every) * step;
  cost.step_share = cost.stall / (between + cost.stall);
  FailurePlan run = failure_plan(spec.cluster, ceil_div(spec.gpus, in_node), 0, step);
  run.checkpoint = cost.stall;
  run.interval = between;
  // A failure while an asynchronous checkpoint is being written loses the work since the previous checkpoint.
  run.restart = run.restart.value_or(0) + (c.asynchronous ? cost.writing : 0);
  cost.run_share = 1 - goodput(run);
}

double storage_Gbps(const Spec& spec) {
  const Cluster& c = spec.cluster;
  if (!spec.strategy.checkpoint || !spec.strategy.checkpoint->asynchronous || !c.storage_on_backend) return 0;
  if (!spec.strategy.checkpoint->to_storage || c.nics < 1) return 0;
  return write_rate(spec) * 8e-9 / c.nics;
}

void slow_steps(CheckpointCost& cost, const Spec& spec, Seconds step, Seconds step_in_flight) {
  const Seconds between = static_cast<double>(spec.strategy.checkpoint->every) * step_in_flight;
  cost.step_in_flight = step_in_flight;
  cost.slowed = std::min(cost.writing, between) * std::max(0.0, 1 - step / step_in_flight);
  cost.stall = cost.copies + std::max(0.0, cost.writing - between) + cost.slowed;
  find_shares(cost, spec, step);
}

CheckpointCost checkpoint_cost(const Spec& spec, Bytes bytes, Bytes of_rank, Seconds step) {
  const Checkpoint& c = *spec.strategy.checkpoint;
  const std::int64_t in_node = std::min<std::int64_t>(spec.gpus, spec.cluster.gpus_per_node);
  CheckpointCost cost{.bytes = bytes, .of_node = of_rank * in_node};
  const double link = host_rates(spec.cluster).link / std::max(1, spec.cluster.gpus_per_pcie_switch);
  cost.copies = link > 0 ? static_cast<double>(of_rank) / link : 0;
  cost.writing = static_cast<double>(cost.of_node) / write_rate(spec);
  const Seconds between = static_cast<double>(c.every) * step;
  cost.stall =
      c.asynchronous ? cost.copies + std::max(0.0, cost.writing - between) : std::max(cost.copies, cost.writing);
  cost.host_bytes = c.asynchronous ? cost.of_node : 0;
  find_shares(cost, spec, step);
  return cost;
}

CheckpointCost checkpoint_cost(const Spec& spec, const Plan& plan, Seconds step) {
  Bytes most = 0, all = 0;
  for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
    const Bytes own = bytes_of_rank(spec, plan, slot);
    most = std::max(most, own);
    all += own * plan.classes[slot].multiplicity;
  }
  return checkpoint_cost(spec, all, most, step);
}

std::string checkpoint_text(const Spec& spec, const CheckpointCost& cost, std::string_view indent) {
  const Checkpoint& c = *spec.strategy.checkpoint;
  std::string text = fmt::format(
      "{}checkpoint every {} steps to {}, {:.4g} GB, {:.4g} GB of them from a node: the step with it is {:.3g} s "
      "longer\n",
      indent, c.every, c.to_storage ? "shared storage" : "the nodes' disks", static_cast<double>(cost.bytes) / 1e9,
      static_cast<double>(cost.of_node) / 1e9, cost.stall);
  text += c.asynchronous
              ? fmt::format(
                    "{}  copied to the hosts in {:.3g} s, written beside training in {:.3g} s from {:.4g} GB "
                    "of a host's memory\n",
                    indent, cost.copies, cost.writing, static_cast<double>(cost.host_bytes) / 1e9)
              : fmt::format("{}  written in {:.3g} s, copied to the hosts meanwhile ({:.3g} s)\n", indent, cost.writing,
                            cost.copies);
  if (cost.step_in_flight > 0)
    text += fmt::format(
        "{}  it leaves over the NICs of the training, whose steps take {:.4g} s meanwhile, {:.3g} s in all\n", indent,
        cost.step_in_flight, cost.slowed);
  return text + fmt::format(
                    "{}  checkpoints take {:.2g} % of the time; with failures and restarts a run of 30 days loses "
                    "{:.3g} days\n",
                    indent, 100 * cost.step_share, 30 * cost.run_share);
}

}  // namespace orrery
