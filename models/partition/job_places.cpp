#include "models/partition/job_places.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "models/base/random.h"
#include "models/spec/network.h"

namespace orrery {
namespace {

// The numbers 0 to n - 1, dealt to leaves of `leaf` sets in turn: the first set of every leaf, then the second ones.
std::vector<std::int64_t> dealt(std::int64_t n, std::int64_t leaf) {
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < leaf; ++row) {
    for (std::int64_t place = row; place < n; place += leaf) places.push_back(place);
  }
  return places;
}

std::vector<std::int64_t> shuffled(std::int64_t n, std::int64_t seed) {
  std::vector<std::int64_t> places(n);
  std::iota(places.begin(), places.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i) {
    const double drawn = uniform(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(i));
    std::swap(places[i], places[static_cast<std::int64_t>(drawn * static_cast<double>(i + 1))]);
  }
  return places;
}

// The numbers of the nodes that a job of `gpus` GPUs uses.
std::set<std::int64_t> nodes_of(const Cluster& c, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                                std::int64_t gpus) {
  std::set<std::int64_t> nodes;
  for (std::int64_t gpu = 0; gpu < gpus; gpu += std::min<std::int64_t>(c.gpus_per_node, node_gpus)) {
    const std::int64_t set = gpu / node_gpus;
    const std::int64_t place = set < std::ssize(places) ? places[set] : set;
    nodes.insert((place * node_gpus + gpu % node_gpus) / c.gpus_per_node);
  }
  return nodes;
}

// The leaves of some nodes that have uplinks that are slow or down.
std::set<std::int64_t> faulty_leaves(const Cluster& c, const std::set<std::int64_t>& nodes) {
  std::set<std::int64_t> leaves, faulty;
  for (const std::int64_t node : nodes) leaves.insert(node / c.network->leaf_nodes);
  for (const LinkFault& fault : c.network->faults) {
    if (fault.plane < 0 && leaves.contains(fault.leaf)) faulty.insert(fault.leaf);
  }
  return faulty;
}

}  // namespace

std::vector<std::int64_t> places_of(const Cluster& c, std::int64_t node_gpus) {
  if (!c.network) return {};
  const Network& n = *c.network;
  const std::int64_t sets = ceil_div(gpus_of(c), node_gpus);
  switch (n.placement) {
    case Placement::contiguous:
      return {};
    case Placement::scattered:
      return dealt(sets, std::max<std::int64_t>(1, n.leaf_nodes * c.gpus_per_node / node_gpus));
    case Placement::random:
      return shuffled(sets, n.seed);
    case Placement::listed:
      return n.job_nodes;
  }
  return {};
}

WorkingPlanes working_planes(const Cluster& c, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                             std::int64_t gpus) {
  const Network& n = *c.network;
  const auto of_plane = [](const LinkFault& f) { return f.plane >= 0; };
  if (!std::ranges::any_of(n.faults, of_plane)) return {n.planes, n.planes, n.planes};
  const std::set<std::int64_t> nodes = nodes_of(c, node_gpus, places, gpus);
  std::set<std::int64_t> whole;
  for (const LinkFault& f : n.faults) {
    if (of_plane(f) && f.node < 0 && f.leaf < 0) whole.insert(f.plane);
  }
  return {common_planes(n, nodes, false), common_planes(n, nodes, true), n.planes - std::ssize(whole)};
}

double slowest_nic_Gbps(const Cluster& c, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                        std::int64_t gpus) {
  const Network& n = *c.network;
  double slowest = c.nic_Gbps;
  if (n.faults.empty() && n.fault_share == 0) return n.efficiency * left_beside(slowest, n.storage_Gbps);
  const WorkingPlanes working = working_planes(c, node_gpus, places, gpus);
  slowest *= static_cast<double>(working.of_nics) / static_cast<double>(n.planes);
  const std::set<std::int64_t> nodes = nodes_of(c, node_gpus, places, gpus);
  for (const LinkFault& fault : n.faults) {
    if (fault.plane < 0 && fault.nic < 0 && nodes.contains(fault.node)) slowest = std::min(slowest, fault.Gbps);
  }
  for (const std::int64_t node : nodes) {
    for (int nic = 0; nic < c.nics && n.fault_share > 0; ++nic) {
      const auto number = static_cast<std::uint64_t>(node * c.nics + nic);
      if (uniform(static_cast<std::uint64_t>(n.seed), number) < n.fault_share)
        slowest = std::min(slowest, n.fault_Gbps);
    }
  }
  return n.efficiency * left_beside(slowest, n.storage_Gbps);
}

std::int64_t least_uplinks(const Cluster& c, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                           std::int64_t gpus) {
  const Network& n = *c.network;
  std::int64_t least = n.leaf_uplinks;
  if (n.faults.empty()) return least;
  for (const std::int64_t leaf : faulty_leaves(c, nodes_of(c, node_gpus, places, gpus)))
    least = std::min<std::int64_t>(least, std::ssize(uplink_rates(n, leaf)));
  return least;
}

SlowUplinks slow_uplinks(const Cluster& c, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                         std::int64_t gpus) {
  const Network& n = *c.network;
  if (std::ranges::none_of(n.faults, [](const LinkFault& f) { return f.link >= 0; })) return {};
  SlowUplinks most;
  const auto working = static_cast<double>(least_uplinks(c, node_gpus, places, gpus));
  for (const std::int64_t leaf : faulty_leaves(c, nodes_of(c, node_gpus, places, gpus))) {
    most.lost = std::max(most.lost, working - working_uplinks(n, leaf));
    most.slowest = std::min(most.slowest, std::ranges::min(uplink_rates(n, leaf)));
  }
  return most;
}

std::vector<SlowNics> slow_nics(const Cluster& c, std::int64_t node_gpus, const std::vector<std::int64_t>& places,
                                std::int64_t gpus) {
  const Network& n = *c.network;
  if (std::ranges::none_of(n.faults, [](const LinkFault& f) { return f.nic >= 0; })) return {};
  const std::set<std::int64_t> nodes = nodes_of(c, node_gpus, places, gpus);
  // NICs are spread evenly over a node's GPUs, or GPUs over its NICs.
  const std::int64_t count = std::min<std::int64_t>(c.nics, c.gpus_per_node);
  std::map<std::int64_t, double> rates;  // of the slowest NIC beside each GPU
  for (const LinkFault& fault : n.faults) {
    if (fault.nic < 0 || !nodes.contains(fault.node)) continue;
    for (std::int64_t gpu = 0; gpu < c.gpus_per_node; ++gpu) {
      if (gpu * count / c.gpus_per_node != fault.nic * count / c.nics) continue;
      double& rate = rates.try_emplace(fault.node * c.gpus_per_node + gpu, c.nic_Gbps).first->second;
      rate = std::min(rate, fault.Gbps);
    }
  }
  std::set<double> different;
  for (const auto& [gpu, rate] : rates) different.insert(rate);
  std::vector<SlowNics> slow;
  for (const double rate : different) {
    if (std::ssize(slow) < kMostNicRates) slow.push_back({{}, n.efficiency * left_beside(rate, n.storage_Gbps)});
  }
  for (const auto& [gpu, rate] : rates) {
    const std::int64_t place = std::distance(different.begin(), different.find(rate));
    slow[static_cast<std::size_t>(std::min(place, kMostNicRates - 1))].gpus.push_back(gpu);
  }
  return slow;
}

}  // namespace orrery
