#include "sim/advice/network_parts.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace orrery {
namespace {

constexpr double kRounding = 1e-9;  // of numbers of ports, which are sums of shares

// Ports of the price list's switch are counted: `links` links of another rate take as many ports as carry them.
class Counter {
 public:
  explicit Counter(const SwitchPrice& price) : price_(price), switch_ports_(static_cast<double>(price.ports)) {}

  double ports(double links, double Gbps) const { return links * Gbps / price_.port_Gbps; }
  double switches_for(double ports) const { return std::ceil(ports / switch_ports_ - kRounding); }
  // Adds `groups` groups of switches, each of which needs so many ports.
  void add_switches(double groups, double ports) {
    parts.switches += static_cast<std::int64_t>(groups * switches_for(ports));
  }
  void add_links(double ports) { parts.links += ports; }
  // Joins the `ports` ports of `units` units, `times` times, so that `out` ports lead on from each. A unit is a port or
  // a group of switches that reach each other. All units hang on every switch above them, if each can have a port of
  // it; else half of a level's ports go to the next level (a folded Clos network; Clos 1953, Al-Fares et al. 2008).
  void join(double times, double units, double ports, double out) {
    const double half = std::max(2.0, std::floor(switch_ports_ / 2));
    for (; units > 1 && units * (1 + out / ports) > switch_ports_ + kRounding; ++parts.levels) {
      units = std::ceil(units / half - kRounding);
      add_switches(times * units, 2 * ports / units);
      add_links(times * ports);
    }
    add_switches(times, ports + out);
    ++parts.levels;
  }

  NetworkParts parts;

 private:
  const SwitchPrice& price_;
  double switch_ports_;
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

// Parts of a dragonfly of `all` leaves, `leaves` in each plane, with `nics` ports for NICs each. A link joins two
// leaves; where groups have a spine of their own, a leaf and a switch of it, or two such switches of different groups.
NetworkParts dragonfly_parts(const Network& n, std::int64_t leaves, double all, double nics, Counter count) {
  const double up = leaves > 1 ? count.ports(static_cast<double>(n.leaf_uplinks), n.leaf_Gbps) : 0;
  const bool groups = leaves > n.groups.leaves;  // whether there is another group
  const double global = groups ? count.ports(static_cast<double>(n.groups.links), n.groups.Gbps) : 0;
  if (n.kind == NetworkKind::dragonfly) {
    count.add_links(all * (nics + (up + global) / 2));
    count.add_switches(all, nics + up + global);
    return count.parts;
  }
  const double of_planes = static_cast<double>(ceil_div(leaves, n.groups.leaves) * n.planes);
  const double spines = leaves > 1 ? of_planes * static_cast<double>(n.groups.spines) : 0;
  count.add_links(all * (nics + up) + spines * global / 2);
  count.add_switches(all, nics + up);
  if (spines > 0) count.add_switches(spines, all * up / spines + global);
  return count.parts;
}

// The leaves of a tree: how many there are, in `spines` spines that are not joined, and the ports of each.
struct Leaves {
  double all = 0, spines = 1, nics = 0, up = 0;
};

// Adds the leaves. Returns into how many units each is divided, which only the levels above join.
double add_leaves(const Leaves& leaves, Counter& count) {
  count.add_links(leaves.all * leaves.nics);
  const double divided = count.switches_for(leaves.nics + leaves.up);
  if (divided <= 1 || leaves.up < leaves.nics - kRounding) {
    count.join(leaves.all, leaves.nics, leaves.nics, leaves.up);
    return 1;
  }
  count.add_switches(leaves.all * divided, (leaves.nics + leaves.up) / divided);
  ++count.parts.levels;
  return divided;
}

// Parts of leaves and what is above them: parts of the spine, level by level, each of which joins so many leaves and
// lets 1/ratio of what comes up into it lead on.
NetworkParts tree_parts(const Leaves& leaves, const std::vector<SpineLevel>& levels, double count_of_leaves,
                        Counter count) {
  const double divided = add_leaves(leaves, count);
  if (leaves.up == 0) return count.parts;
  count.add_links(leaves.all * leaves.up);
  double units = leaves.all * divided, rate = leaves.all * leaves.up;
  for (const SpineLevel& level : levels) {
    const double parts = std::ceil(count_of_leaves / static_cast<double>(level.leaves));
    const double groups = parts * leaves.spines, below = rate / groups;
    const double above = parts > 1 ? below / level.ratio : 0;
    count.join(groups, units / groups, below, above);
    if (above == 0) return count.parts;
    count.add_links(above * groups);
    units = groups;
    rate = above * groups;
  }
  count.join(leaves.spines, units / leaves.spines, rate / leaves.spines, 0);
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
  const double rails = has_rails(n.kind) ? std::max(1, c.nics) : 1;
  const auto planes = static_cast<double>(n.planes);
  const std::int64_t leaves = ceil_div(nodes, n.leaf_nodes);  // of each rail
  const double all = static_cast<double>(leaves) * rails * planes;
  const double nics = count.ports(static_cast<double>(nodes * c.nics), c.nic_Gbps) / all;
  if (has_groups(n.kind)) return dragonfly_parts(n, leaves, all, nics, count);
  // A single leaf needs nothing above it; the only leaves of several rails do, unless rails are not joined.
  const bool joined = leaves > 1 || (n.kind == NetworkKind::rails && rails > 1);
  // A ratio without parts of the spine is that of the leaves' own uplinks.
  const double shared = n.spine_leaves > 1 ? 1 : n.spine_ratio;
  const double up = joined ? count.ports(static_cast<double>(n.leaf_uplinks), n.leaf_Gbps) / shared : 0;
  const double spines = planes * (n.kind == NetworkKind::rail_only ? rails : 1);
  std::vector<SpineLevel> levels = n.upper_spine;
  levels.insert(levels.begin(), {n.spine_leaves > 1 ? n.spine_leaves : leaves, n.spine_ratio});
  return tree_parts({.all = all, .spines = spines, .nics = nics, .up = up}, levels, static_cast<double>(leaves), count);
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
