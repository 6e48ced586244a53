#include "models/partition/job_seats.h"

#include <algorithm>

#include "models/partition/job_places.h"
#include "models/spec/sites.h"

namespace orrery {
namespace {

// Returns whether leaves and the spine carry at any time what all NICs send.
bool carries_all(const Cluster& c) {
  const Network& n = *c.network;
  const auto switches = static_cast<double>(has_rails(n.kind) ? std::max(1, c.nics) : 1);
  const double uplinks = switches * static_cast<double>(n.leaf_uplinks * n.planes) * n.leaf_Gbps;
  const double nics = static_cast<double>(n.leaf_nodes * c.nics) * c.nic_Gbps;
  return uplinks >= nics * (1 - 1e-9) && n.spine_ratio <= 1 && n.upper_spine.empty() && n.routing != Routing::ecmp &&
         n.routing != Routing::pinned && n.load == 0 && n.latency_us == 0 && n.storage_Gbps == 0 && n.faults.empty() &&
         n.fault_share == 0 && n.efficiency >= 1;
}

}  // namespace

JobSeats::JobSeats(const Plan& plan, const Cluster& cluster, std::int64_t node_gpus)
    : plan_(plan), node_gpus_(node_gpus), places_(places_of(cluster, node_gpus)) {}

std::int64_t JobSeats::place_of(std::int64_t rank) const {
  const std::int64_t node = node_of(rank);
  return node < std::ssize(places_) ? places_[node] : node;
}

std::int64_t JobSeats::domain_of(std::int64_t gpus, std::int64_t rank) const {
  if (places_.empty()) return rank / gpus;
  return (place_of(rank) * node_gpus_ + plan_.seat_of(rank) % node_gpus_) / gpus;
}

std::vector<std::int64_t> peculiar_places(const Plan& plan, const Cluster& c, const JobSeats& seats) {
  if (!c.network) return {};
  const Network& n = *c.network;
  const std::vector<SlowNics> slow = slow_nics(c, seats.node_gpus(), seats.places(), plan.workers());
  if (slow.empty() && n.site_sizes.empty()) return {};
  const auto nic_at = [&](std::int64_t gpu) {
    const auto beside = [&](const SlowNics& nics) { return std::ranges::binary_search(nics.gpus, gpu); };
    return std::ranges::find_if(slow, beside) - slow.begin();
  };
  std::vector<std::int64_t> result;
  for (std::int64_t r = 0; r < plan.workers(); ++r) {
    const std::int64_t site = site_of(n, seats.domain_of(c.gpus_per_node, r));
    result.push_back(site * (std::ssize(slow) + 1) + nic_at(seats.domain_of(1, r)));
  }
  return result;
}

std::int64_t gpus_of_sets(const Cluster& c, std::int64_t nodes, std::int64_t sets) {
  constexpr std::int64_t kAll = 1'000'000'000'000;  // above any cluster's
  return nodes > kAll / c.gpus_per_node / sets ? kAll : nodes * c.gpus_per_node * sets;
}

std::vector<std::int64_t> domain_sizes(const Cluster& c) {
  std::vector<std::int64_t> sizes;
  const bool hops = c.network && c.network->latency_us > 0;
  if (c.oversubscribed_above_gpus > 0 && (c.oversubscription > 1 || hops)) sizes.push_back(c.oversubscribed_above_gpus);
  if (!c.network) return sizes;
  const Network& n = *c.network;
  if (n.leaf_nodes > 0 && !carries_all(c)) {
    sizes.push_back(gpus_of_sets(c, n.leaf_nodes, 1));
    if (n.spine_leaves > 1) sizes.push_back(gpus_of_sets(c, n.leaf_nodes, n.spine_leaves));
    for (const SpineLevel& level : n.upper_spine) sizes.push_back(gpus_of_sets(c, n.leaf_nodes, level.leaves));
  }
  if (has_groups(n.kind)) sizes.push_back(gpus_of_sets(c, n.leaf_nodes, n.groups.leaves));
  if (n.site_nodes > 0) sizes.push_back(gpus_of_sets(c, n.site_nodes, 1));
  return sizes;
}

}  // namespace orrery
