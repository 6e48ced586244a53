#include "sim/price_servers.h"

#include <algorithm>
#include <vector>

#include "models/pace.h"

namespace orrery {
namespace {

NcclModel pair_on(const Spec& spec, const Profile& profile, std::vector<int> members) {
  return nccl_model(spec.cluster, members, spec.software.nccl_minor, profile.nccl);
}

NcclChoice served_here(const Collective& c, const Plan& plan, const Spec& spec, const Profile& profile) {
  NcclModel pair = pair_on(spec, profile, {2});
  pair.topology.nvlink_GBps = 0;
  const auto& host = spec.cluster.host;
  const double memory = host && host->dram_GBps > 0 ? host->dram_GBps : 0;
  const auto at_once = static_cast<double>(own_pace(spec.strategy) ? 1 : plan.workers());
  const double all = at_once * static_cast<double>(c.bytes);
  const double held = memory > 0 ? all * pair.topology.pcie_GBps / memory : 0;
  return nccl_point_to_point(pair, true, std::max(c.bytes, static_cast<Bytes>(held)));
}

}  // namespace

NcclChoice served(const Collective& c, const Plan& plan, const Spec& spec, const Profile& profile) {
  const std::int64_t gpus = nccl_node_gpus(spec.cluster), workers = plan.workers(), node = std::min(gpus, workers);
  const std::int64_t nics = std::clamp<std::int64_t>(spec.cluster.nics, 1, gpus), nodes = ceil_div(workers, node);
  const bool beside = spec.strategy.parameter_server->colocated;
  if (beside && nodes == 1) return served_here(c, plan, spec, profile);
  const std::int64_t near = beside ? c.servers / nodes : 0;  // servers on each worker's machine
  const std::int64_t on_nic = beside ? ceil_div(ceil_div(c.servers, nodes), nics) : 1;
  const double each = static_cast<double>(c.bytes) / static_cast<double>(c.servers);
  if (own_pace(spec.strategy)) {  // one worker's: the others share the ports while theirs are under way
    return nccl_point_to_point(pair_on(spec, profile, {1, 1}), false,
                               static_cast<Bytes>(each * static_cast<double>(c.servers - near)));
  }
  const double of_workers = each * static_cast<double>((c.servers - near) * ceil_div(node, nics));
  const double of_servers = each * static_cast<double>((beside ? workers - node : workers) * on_nic);
  return nccl_point_to_point(pair_on(spec, profile, {1, 1}), false,
                             static_cast<Bytes>(std::max(of_workers, of_servers)));
}

}  // namespace orrery
