#pragma once

#include <cstdint>
#include <vector>

#include "models/cost/nccl/topology.h"

namespace orrery {

// A link between two switches, or what else is above the NICs, of which `GBps` are left for one GPU's NICs when all
// NICs below send at the same time. `links`: the number of links in a row that it stands for (a torus).
struct SwitchLink {
  Place from, to;
  double GBps = 0;
  Picoseconds latency = 0;
  int links = 1;
};

// The NICs that one GPU uses: number `index` of `count` equal parts of a node's NICs.
struct NicsOfGpu {
  std::int64_t node = 0, index = 0, count = 1;
};

// Returns what the NICs are cabled to: their leaf switch, their node in a torus, or, if no switches are known, leaf 0.
Place switch_of(const Cluster& cluster, const NicsOfGpu& nics);

// Returns the rate of these NICs together, GB/s, in transfers with node `other` (cluster.network.faults).
double nic_GBps(const Cluster& cluster, const NicsOfGpu& nics, std::int64_t other);

// Returns the links above the switches of two GPUs' NICs, on ways from one to the other; none if both are on the same
// switch.
std::vector<SwitchLink> links_between(const Cluster& cluster, const NicsOfGpu& a, const NicsOfGpu& b);

}  // namespace orrery
