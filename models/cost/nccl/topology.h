#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/spec/cluster.h"

namespace orrery {

// The kinds of component of a cluster at which links start or end. `nvswitch` is the whole NVLink domain, `leaf` the
// switches below which the network is not oversubscribed. `nic` is all NICs that one GPU has to itself, where there are
// more NICs than GPUs.
enum class PlaceKind : std::uint8_t { gpu, nvswitch, pcie_switch, cpu, dram, nvme, nic, leaf, spine };

// One component of a cluster. index counts within the node for components of a node, within the cluster for nvswitch
// and leaf (node is 0). GPUs count within the cluster. Two places are the same component if and only if they are equal.
struct Place {
  PlaceKind part = PlaceKind::gpu;
  std::int64_t node = 0;
  std::int64_t index = 0;
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
};

std::string to_string(const Place& place);  // "gpu 9", "nic 1.0" (node.index), "leaf 0"

// One direction of a link. GBps is the rate in this direction; for leaf to spine, the share of one NIC when all send.
struct Hop {
  Place from;
  Place to;
  double GBps = 0;
  Picoseconds latency = 0;
};

// The path of least latency between two components. It ignores protocols, message sizes and other traffic.
struct Route {
  std::vector<Hop> hops;
  double GBps = 0;  // rate of the narrowest hop; the GPU's memory bandwidth if there is none
  Picoseconds latency = 0;
};

Place gpu_place(const Cluster& cluster, std::int64_t gpu);  // GPUs count through the cluster, node by node
Place dram_place(std::int64_t node);
Place nvme_place(std::int64_t node);

// The route between two places. Between GPUs it depends only on how far apart they are (same GPU, NVLink domain, node,
// leaf, cluster) and on which of them share a PCIe switch with a NIC, so that callers cache routes by these. Each call
// builds the graph of the two nodes. Throws Error for places that the cluster does not have, and if there is no route.
Route route(const Cluster& cluster, const Place& from, const Place& to);
Route route(const Cluster& cluster, std::int64_t from_gpu, std::int64_t to_gpu);

}  // namespace orrery
