#include "sim/cost/server_costs.h"

#include <algorithm>
#include <vector>

namespace orrery {
namespace {

NcclModel pair_on(const Spec& spec, const Profile& profile, std::vector<int> members) {
  return nccl_model(spec.cluster, members, {spec.software.communication.nccl_minor, spec.gpus}, profile.nccl);
}

// Returns the bandwidth of the memory of a machine's host, in GB/s; 0: not known.
double memory_GBps(const Spec& spec) {
  const auto& host = spec.cluster.host;
  return host && host->dram_GBps > 0 ? host->dram_GBps : 0;
}

// Returns the cost of a push to parameter servers, or of a pull from them, if workers and servers are all on one
// machine. at_once: number of workers that push or pull at the same time.
NcclChoice served_here(const Collective& c, std::int64_t at_once, const Spec& spec, const Profile& profile) {
  NcclModel pair = pair_on(spec, profile, {2});
  pair.topology.nvlink_GBps = 0;
  const double memory = memory_GBps(spec);
  const double all = static_cast<double>(at_once * c.bytes);
  const double held = memory > 0 ? all * pair.topology.pcie_GBps / memory : 0;
  return nccl_point_to_point(pair, true, std::max(c.bytes, static_cast<Bytes>(held)));
}

// Returns the cost of the messages between all workers and the servers with which workers exchange data: in each chain
// of parameter servers, a push goes to the first server and a pull comes from the last.
NcclChoice around(const Collective& c, const Plan& plan, const Spec& spec, const Profile& profile) {
  const std::int64_t gpus = nccl_node_gpus(spec.cluster), workers = plan.workers(), node = std::min(gpus, workers);
  const std::int64_t nics = std::clamp<std::int64_t>(spec.cluster.nics, 1, gpus), nodes = ceil_div(workers, node);
  const bool beside = plan.servers_beside;
  if (beside && nodes == 1) return served_here(c, plan.asynchronous_workers ? 1 : workers, spec, profile);
  const std::int64_t near = beside ? c.servers / nodes : 0;  // number of servers on each worker's machine
  const std::int64_t on_nic = beside ? ceil_div(ceil_div(c.servers, nodes), nics) : 1;
  const double each = static_cast<double>(c.bytes) / static_cast<double>(c.servers);
  // The messages of an asynchronous worker are timed as if alone, since other workers send at other times. If transfers
  // of two workers do overlap, the simulation lets them share the NICs.
  if (plan.asynchronous_workers) {
    return nccl_point_to_point(pair_on(spec, profile, {1, 1}), false,
                               static_cast<Bytes>(each * static_cast<double>(c.servers - near)));
  }
  const double of_workers = each * static_cast<double>((c.servers - near) * ceil_div(node, nics));
  const double of_servers = each * static_cast<double>((beside ? workers - node : workers) * on_nic);
  return nccl_point_to_point(pair_on(spec, profile, {1, 1}), false,
                             static_cast<Bytes>(std::max(of_workers, of_servers)));
}

// Returns the time in which every chain of parameter servers passes the sums of gradients on to the next server of the
// chain, all chains at the same time.
Seconds hop(const Collective& c, const Plan& plan, const Spec& spec, const Profile& profile) {
  const std::int64_t gpus = nccl_node_gpus(spec.cluster), node = std::min(gpus, plan.workers());
  const std::int64_t nodes = plan.servers_beside ? ceil_div(plan.workers(), node) : c.servers;
  const double memory = memory_GBps(spec) * 1e9;
  // If all parameter servers are on one node, the gradient sums do not use a NIC: they are read from and written to the
  // host's memory.
  if (nodes == 1 && memory > 0) return 2 * static_cast<double>(c.bytes) / memory;
  if (nodes == 1) return served_here(c, 1, spec, profile).seconds;
  const std::int64_t nics = std::clamp<std::int64_t>(spec.cluster.nics, 1, gpus);
  const std::int64_t on_nic = ceil_div(ceil_div(c.servers, nodes), nics);
  return nccl_point_to_point(pair_on(spec, profile, {1, 1}), false, ceil_div(c.bytes, c.servers) * on_nic).seconds;
}

}  // namespace

NcclChoice served(const Collective& c, const Plan& plan, const Spec& spec, const Profile& profile) {
  NcclChoice choice = around(c, plan, spec, profile);
  if (c.kind != CollectiveKind::push || c.copies == 1) return choice;
  const double alone = choice.seconds;
  choice.seconds += static_cast<double>(c.copies - 1) * hop(c, plan, spec, profile);
  // While servers pass gradient sums along their chains, the workers' links are idle, so the mean load on the links
  // over the whole push is lower.
  choice.nic_share *= alone / choice.seconds;
  choice.nvlink_share *= alone / choice.seconds;
  return choice;
}

}  // namespace orrery
