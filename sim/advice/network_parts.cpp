#include "sim/advice/network_parts.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Ports of the price list's switch are counted: `links` links of another rate take as many ports as carry them.
class Counter {
 public:
  explicit Counter(const SwitchPrice& price) : price_(price) {}

  double ports(double links, double Gbps) const { return links * Gbps / price_.port_Gbps; }
  // Adds `groups` groups of switches, each of which needs so many ports.
  void add_switches(std::int64_t groups, double ports) {
    const double each = std::ceil(ports / static_cast<double>(price_.ports) - 1e-9);
    parts.switches += groups * static_cast<std::int64_t>(each);
  }
  void add_links(double ports) { parts.links += ports; }

  NetworkParts parts;

 private:
  const SwitchPrice& price_;
};

// Parts of a torus of which a job has `used` nodes.
NetworkParts torus_parts(const Torus& torus, double used, Counter count) {
  double nodes = 1, links = 0;
  for (const std::int64_t along : torus.shape) nodes *= static_cast<double>(along);
  for (const std::int64_t along : torus.shape) {
    // A row of two nodes has one link, also where rows are closed.
    const auto in_row = static_cast<double>(torus.wraps && along > 2 ? along : along - 1);
    links += nodes / static_cast<double>(along) * in_row;
  }
  count.add_links(count.ports(links, torus.Gbps) * used / nodes);
  return count.parts;
}

// All switches and cables of a fabric, also those that a job does not use.
NetworkParts graph_parts(const Cluster& c, Counter count) {
  count.parts.switches = c.network->graph.switches;
  count.add_links(count.ports(static_cast<double>(c.nodes * c.nics), c.nic_Gbps));
  for (const FabricGraph::Cable& cable : c.network->graph.cables) count.add_links(count.ports(cable.count, cable.Gbps));
  return count.parts;
}

}  // namespace

NetworkParts network_parts(const Cluster& c, std::int64_t nodes, const SwitchPrice& price) {
  if (!c.network || price.ports < 1) return {};
  const Network& n = *c.network;
  Counter count(price);
  if (n.kind == NetworkKind::torus) return torus_parts(n.torus, static_cast<double>(nodes), count);
  if (n.kind == NetworkKind::graph) return graph_parts(c, count);
  if (n.leaf_nodes == 0) return {};
  const std::int64_t rails = has_rails(n.kind) ? std::max(1, c.nics) : 1;
  const std::int64_t leaves = ceil_div(nodes, n.leaf_nodes);  // of each rail
  const std::int64_t switches = leaves * rails * n.planes;    // of all leaves
  const auto all = static_cast<double>(switches);
  const double nics = count.ports(static_cast<double>(nodes * c.nics), c.nic_Gbps);
  const bool dragonfly = n.kind == NetworkKind::dragonfly;
  // A single leaf needs nothing above it; the only leaves of several rails do, unless rails are not joined.
  const bool joined = leaves > 1 || (n.kind == NetworkKind::rails && rails > 1);
  const double up = joined ? count.ports(static_cast<double>(n.leaf_uplinks), n.leaf_Gbps) : 0;
  const bool groups = dragonfly && leaves > n.groups.leaves;  // whether there is another group
  const double global = groups ? count.ports(static_cast<double>(n.groups.links), n.groups.Gbps) : 0;
  count.add_links(nics);
  count.add_switches(switches, nics / all + up + global);
  if (dragonfly) {  // every link joins two leaves
    count.add_links(all * (up + global) / 2);
    return count.parts;
  }
  count.add_links(all * up);
  const std::int64_t planes = n.planes * (n.kind == NetworkKind::rail_only ? rails : 1);  // spines that are not joined
  const std::int64_t parts = ceil_div(leaves, n.spine_leaves > 1 ? n.spine_leaves : leaves);
  const double below = all * up / static_cast<double>(parts * planes);
  const double above = parts > 1 ? below / n.spine_ratio : 0;
  if (joined) count.add_switches(parts * planes, below + above);
  if (above > 0) {
    count.add_links(above * static_cast<double>(parts * planes));
    count.add_switches(planes, above * static_cast<double>(parts));
  }
  return count.parts;
}

std::optional<double> usd_of(const NetworkParts& parts, const SwitchPrice& price) {
  if (parts.links == 0 || !price.switch_usd || !price.link_usd) return std::nullopt;
  return static_cast<double>(parts.switches) * *price.switch_usd + parts.links * *price.link_usd;
}

std::optional<double> kW_of(const NetworkParts& parts, const SwitchPrice& price) {
  if (parts.links == 0 || !price.link_kW) return std::nullopt;
  return static_cast<double>(parts.switches) * price.switch_kW.value_or(0) + parts.links * *price.link_kW;
}

}  // namespace orrery
