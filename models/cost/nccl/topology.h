#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/spec/cluster.h"

namespace orrery {

// The types of components of a cluster, between which the links run. `nvswitch` is the complete NVLink domain, `leaf`
// a leaf switch (cluster.network), or the switches of a pod below which the network is not oversubscribed. Above leaves
// are the parts of the spine (`spine`) and what joins them (`core`), groups of a dragonfly, or the switches of a site;
// `grid` is a node of a torus, at which its NICs meet. If there are more NICs than GPUs, `nic` is all NICs of one GPU
// together. `store` is a memory tier behind the host, such as disks.
enum class PlaceKind : std::uint8_t {
  gpu,
  nvswitch,
  pcie_switch,
  cpu,
  dram,
  store,
  nic,
  leaf,
  spine,
  core,
  group,
  site,
  grid
};

// One component of a cluster. index is the number within the node for components of a node, and within the cluster for
// GPUs, nvswitch and what is above NICs; node is 0 for these. Two Places are the same component if and only if they are
// equal.
struct Place {
  PlaceKind part = PlaceKind::gpu;
  std::int64_t node = 0;
  std::int64_t index = 0;
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Returns the name of a component in messages: "gpu 9", "nic 1.0" (node.index), "leaf 0".
std::string to_string(const Place& place);

// One direction of a link. GBps is the rate in this direction; above leaves, GBps is the share of one GPU's NICs if all
// NICs send at the same time. links: the number of links in a row that the hop stands for (in a torus).
struct Hop {
  Place from;
  Place to;
  double GBps = 0;
  Picoseconds latency = 0;
  int links = 1;
};

// The path of least latency between two components, whatever the protocol, message size and other traffic.
struct Route {
  std::vector<Hop> hops;
  double GBps = 0;  // rate of the slowest hop; the GPU's memory bandwidth if there is no hop
  Picoseconds latency = 0;
};

// Returns the component (Place) that is GPU number `gpu` of the cluster; GPUs are numbered node by node.
Place gpu_place(const Cluster& cluster, std::int64_t gpu);
Place dram_place(std::int64_t node);
// Returns the component (Place) that is a memory tier behind the host, such as disks, of one node.
Place store_place(std::int64_t node, MemoryTier tier);

// Returns the route between two components over the network that cluster.network describes, whose links at fault count.
// Each call builds the graph of the two nodes. Throws Error for components that the cluster does not
// have, and if there is no route.
Route route(const Cluster& cluster, const Place& from, const Place& to);
Route route(const Cluster& cluster, std::int64_t from_gpu, std::int64_t to_gpu);

}  // namespace orrery
