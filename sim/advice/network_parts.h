#pragma once

#include <cstdint>
#include <optional>

#include "models/spec/cluster.h"
#include "sim/advice/prices.h"

namespace orrery {

// NetworkParts counts what joins the nodes of a cluster: switches, and links with what is at their two ends
// (transceivers, or the plugs of a cable). Links are counted at the rate of the switches' ports: one of half the rate
// is half a link.
struct NetworkParts {
  std::int64_t switches = 0;
  double links = 0;
  int levels = 0;  // switches from a NIC up to the top; 0: the network is no tree
};

// Counts the parts that `nodes` nodes need of the network that cluster.network describes; none if it describes none. A
// leaf, a part of the spine, and what joins these parts are each as many levels of switches as the ports of the list's
// switch require: those of 64 ports join up to 64 leaves of 32 hosts without contention in two levels, and up to 65,536
// hosts in three. Rails that are joined count as the leaves of one tree, since each reaches all others over the spine.
NetworkParts network_parts(const Cluster& cluster, std::int64_t nodes, const SwitchPrice& price);

// The price of the parts in US dollars, and their power in kW; nullopt: not known.
std::optional<double> usd_of(const NetworkParts& parts, const SwitchPrice& price);
std::optional<double> kW_of(const NetworkParts& parts, const SwitchPrice& price);

}  // namespace orrery
