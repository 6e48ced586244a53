#include "sim/uplinks.h"

#include <algorithm>
#include <map>

namespace orrery {
namespace {

constexpr auto kPipeline = static_cast<std::size_t>(Dimension::pipeline);

}  // namespace

Uplinks::Uplinks(const Plan& plan, const Cluster& cluster) : plan_(plan) {
  if (cluster.oversubscribed_above_gpus <= 0 || cluster.oversubscription <= 1) return;
  pod_gpus_ = cluster.oversubscribed_above_gpus;
  const double nics = static_cast<double>(cluster.nics) * static_cast<double>(pod_gpus_) / cluster.gpus_per_node;
  capacity_GBps_ = nics * cluster.nic_Gbps / 8 / cluster.oversubscription;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    std::map<std::int64_t, std::int64_t> leaving;
    for (const auto& group : plan.dimensions[d].groups) {
      const auto leave = [&](std::int64_t from, std::int64_t to) {
        if (crosses(from, to)) edges_[d] = std::max(edges_[d], ++leaving[pod_of(from)]);
      };
      for (std::size_t i = 0; i + 1 < group.size(); ++i) {
        leave(group[i], group[i + 1]);
        if (d == kPipeline) leave(group[i + 1], group[i]);  // gradients come back while activations go
      }
      if (d != kPipeline && group.size() > 1) leave(group.back(), group.front());
    }
  }
}

bool Uplinks::crosses(Dimension d, std::int64_t rank) const {
  if (pod_gpus_ == 0) return false;
  const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(d)];
  const auto& group = table.groups[table.member_of[rank]];
  return crosses(group.front(), group.back());  // in rank order
}

double Uplinks::slowdown(Dimension d, double GBps) const {
  return std::max(1.0, static_cast<double>(edges_[static_cast<std::size_t>(d)]) * GBps / capacity_GBps_);
}

}  // namespace orrery
