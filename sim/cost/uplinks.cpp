#include "sim/cost/uplinks.h"

#include <algorithm>
#include <map>

namespace orrery {
namespace {

constexpr auto kPipeline = static_cast<std::size_t>(Dimension::pipeline);

}  // namespace

Uplinks::Uplinks(const Plan& plan, const Cluster& cluster, std::int64_t node_gpus) : plan_(plan) {
  if (cluster.oversubscribed_above_gpus <= 0 || cluster.oversubscription <= 1) return;
  pod_gpus_ = cluster.oversubscribed_above_gpus;
  const double nics = static_cast<double>(cluster.nics) * static_cast<double>(pod_gpus_) / cluster.gpus_per_node;
  capacity_ = nics * cluster.nic_Gbps / 8 / cluster.oversubscription * 1e9;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    count_edges(d);
    count_pairs(d, node_gpus);
  }
}

void Uplinks::count_edges(std::size_t dimension) {
  std::map<std::int64_t, double> leaving;
  for (const auto& group : plan_.dimensions[dimension].groups) {
    const auto leave = [&](std::int64_t from, std::int64_t to) {
      if (crosses(from, to)) edges_[dimension] = std::max(edges_[dimension], ++leaving[pod_of(from)]);
    };
    for (std::size_t i = 0; i + 1 < group.size(); ++i) {
      leave(group[i], group[i + 1]);
      // A pipeline transfers in both directions at once, activations forward and gradients back, so both count.
      if (dimension == kPipeline) leave(group[i + 1], group[i]);
    }
    if (dimension != kPipeline && group.size() > 1) leave(group.back(), group.front());
  }
}

// Finds for each pod how many pairs of ranks cross its boundary: a group with n members, k of them inside the pod, has
// k (n - k) such pairs. The pairs that cross the boundary of a node are counted in the same way.
void Uplinks::count_pairs(std::size_t dimension, std::int64_t node_gpus) {
  std::map<std::int64_t, double> leaving;
  for (const auto& group : plan_.dimensions[dimension].groups) {
    std::map<std::int64_t, double> in_pod, in_node;
    for (const std::int32_t rank : group) {
      ++in_pod[pod_of(rank)];
      ++in_node[plan_.seat_of(rank) / node_gpus];
    }
    const auto size = static_cast<double>(group.size());
    double node = 0;
    for (const auto& [id, members] : in_node) node = std::max(node, members * (size - members));
    for (const auto& [pod, members] : in_pod) {
      if (members < size) leaving[pod] += members * (size - members) / node;
    }
  }
  for (const auto& [pod, sent] : leaving) pairs_[dimension] = std::max(pairs_[dimension], sent);
}

bool Uplinks::crosses(Dimension d, std::int64_t rank) const {
  if (pod_gpus_ == 0) return false;
  const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(d)];
  const auto& group = table.groups[table.member_of[rank]];
  // Members are in rank order, so the group is in more than one pod if its first and last members are in different
  // pods.
  return crosses(group.front(), group.back());
}

Seconds Uplinks::least_time(Dimension d, Pattern pattern, double node_bytes) const {
  if (pod_gpus_ == 0) return 0;
  const auto& sent = pattern == Pattern::pairs ? pairs_ : edges_;
  return sent[static_cast<std::size_t>(d)] * node_bytes / capacity_;
}

}  // namespace orrery
