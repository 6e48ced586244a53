#include "sim/topology/fabric.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "sim/cost/graph_routes.h"

namespace orrery {
namespace {

// The most switches of a fabric that is kept as a graph, and the most pairs of a leaf and a NIC.
constexpr std::size_t kMostSwitches = 20'000, kMostPairs = 20'000'000;

// A NIC of a node: its LID, the number of the switch that it is on, and its device.
struct Nic {
  int lid = 0;
  std::int32_t leaf = 0;
  std::string device;

  // Devices are in the order of their numbers: mlx5_3 before mlx5_10.
  bool operator<(const Nic& other) const {
    return std::pair(device.size(), device) < std::pair(other.device.size(), other.device);
  }
};

class RouteFinder {
 public:
  explicit RouteFinder(const FabricLinks& fabric) : fabric_(fabric) {
    for (std::size_t i = 0; i < fabric.switches.size(); ++i) {
      number_of_[fabric.switches[i].id] = static_cast<std::int32_t>(i);
      for (const auto& [number, port] : fabric.switches[i].ports) {
        if (!port.host.empty()) nics_[port.host].push_back({port.lid, static_cast<std::int32_t>(i), port.device});
      }
    }
    for (auto& [host, nics] : nics_) std::stable_sort(nics.begin(), nics.end());
    add_cables();
  }

  std::optional<FabricRoutes> find(const std::vector<std::string>& nodes, std::int64_t nics) {
    for (const std::string& name : nodes) {
      const auto at = nics_.find(name);
      if (at == nics_.end() || std::ssize(at->second) != nics) continue;
      found_.nodes.push_back(name);
      std::vector<std::int32_t>& leaves = found_.graph.leaves.emplace_back();
      for (const Nic& nic : at->second) {
        leaves.push_back(nic.leaf);
        taken_.push_back(nic);
      }
    }
    std::set<std::int32_t> leaves;
    for (const Nic& nic : taken_) leaves.insert(nic.leaf);
    if (found_.graph.cables.empty() || taken_.empty() || leaves.size() * taken_.size() > kMostPairs)
      return std::nullopt;
    GraphRoutes routes(found_.graph);
    load_evenly(routes, leaves);
    found_.regular = alike(leaves) && as_full_as_uplinks(leaves, routes);
    if (!fabric_.tables.empty()) follow_tables(routes, leaves);
    return std::move(found_);
  }

 private:
  // Numbers the cables between each two switches, which both print.
  void add_cables() {
    found_.graph.switches = static_cast<std::int32_t>(fabric_.switches.size());
    for (std::int32_t from = 0; from < found_.graph.switches; ++from) {
      std::map<std::pair<std::int32_t, double>, std::int32_t> links;
      for (const auto& [number, port] : fabric_.switches[from].ports) {
        const auto to = number_of_.find(port.peer);
        if (!port.peer.empty() && to != number_of_.end() && to->second > from) ++links[{to->second, port.Gbps}];
      }
      for (const auto& [to, count] : links) {
        cables_of_[{from, to.first}].push_back(static_cast<std::int64_t>(found_.graph.cables.size()));
        found_.graph.cables.push_back({from, to.first, count, to.second > 0 ? to.second : 1});
      }
    }
  }

  // The link that a port of a switch sends over: the cables to the port's peer that have the port's rate, or where the
  // peer's ports print another rate, the first of them; -1: there is none.
  std::int64_t link_of(std::int32_t from, const FabricLinks::Port& port) const {
    const std::int32_t to = number_of_.at(port.peer);
    const auto at = cables_of_.find({std::min(from, to), std::max(from, to)});
    if (at == cables_of_.end()) return -1;
    const auto same = std::ranges::find_if(
        at->second, [&](std::int64_t c) { return found_.graph.cables[static_cast<std::size_t>(c)].Gbps == port.Gbps; });
    return 2 * (same == at->second.end() ? at->second.front() : *same) + (from < to ? 0 : 1);
  }

  void load_evenly(GraphRoutes& routes, const std::set<std::int32_t>& leaves) {
    even_.assign(static_cast<std::size_t>(routes.link_count()), 0);
    std::map<std::int32_t, double> on_leaf;
    for (const Nic& nic : taken_) ++on_leaf[nic.leaf];
    for (const std::int32_t from : leaves) {
      for (const auto& [to, count] : on_leaf) {
        for (const auto& [link, share] : routes.shares(from, to)) even_[link] += count * share;
      }
    }
  }

  bool alike(const std::set<std::int32_t>& leaves) const {
    std::set<std::pair<std::size_t, std::size_t>> kinds;  // of leaves, by their numbers of NICs and of uplinks
    std::set<double> rates;
    std::map<std::int32_t, std::size_t> nics;
    for (const Nic& nic : taken_) ++nics[nic.leaf];
    for (const std::int32_t leaf : leaves) {
      std::size_t up = 0;
      for (const auto& [number, port] : fabric_.switches[leaf].ports) up += port.peer.empty() ? 0 : 1;
      kinds.insert({nics[leaf], up});
    }
    for (const FabricGraph::Cable& c : found_.graph.cables) rates.insert(c.Gbps);
    return kinds.size() == 1 && rates.size() == 1;
  }

  // Whether no link is fuller than the uplinks of a leaf are that all NICs beyond it are sent to evenly.
  bool as_full_as_uplinks(const std::set<std::int32_t>& leaves, const GraphRoutes& routes) const {
    double most = 0, uplinks = 0;
    for (std::int64_t link = 0; link < routes.link_count(); ++link)
      most = std::max(most, even_[link] / found_.graph.cables[link / 2].count);
    for (const auto& [number, port] : fabric_.switches[*leaves.begin()].ports) uplinks += port.peer.empty() ? 0 : 1;
    std::size_t own = 0;
    for (const Nic& nic : taken_) own += nic.leaf == *leaves.begin() ? 1 : 0;
    return uplinks > 0 && most <= static_cast<double>(taken_.size() - own) / uplinks * (1 + 1e-9);
  }

  // Follows the table of every switch from each leaf to each NIC. Loads count on single ports, of which the fullest of
  // a cable stands for all.
  void follow_tables(GraphRoutes& routes, const std::set<std::int32_t>& leaves) {
    std::map<std::pair<std::int32_t, int>, double> on_port;
    for (const std::int32_t leaf : leaves) {
      for (const Nic& nic : taken_) {
        if (nic.leaf == leaf) continue;
        ++found_.routes;
        found_.longer += follow(leaf, nic, routes.distance(leaf, nic.leaf), on_port) ? 0 : 1;
      }
    }
    std::vector<double> by_table(even_.size(), 0);
    for (const auto& [port, load] : on_port) {
      const std::int64_t link = link_of(port.first, fabric_.switches[port.first].ports.at(port.second));
      by_table[link] = std::max(by_table[link], load * found_.graph.cables[link / 2].count);
    }
    slow_down(by_table);
  }

  bool follow(std::int32_t at, const Nic& nic, int hops,
              std::map<std::pair<std::int32_t, int>, double>& on_port) const {
    std::vector<std::pair<std::int32_t, int>> way;
    while (at != nic.leaf && std::ssize(way) < hops) {
      const FabricLinks::Switch& s = fabric_.switches[at];
      const auto table = fabric_.tables.find(s.lid);
      if (table == fabric_.tables.end() || !table->second.contains(nic.lid)) return false;
      const int number = table->second.at(nic.lid);
      const auto port = s.ports.find(number);
      if (port == s.ports.end() || !number_of_.contains(port->second.peer)) return false;
      if (link_of(at, port->second) < 0) return false;
      way.emplace_back(at, number);
      at = number_of_.at(port->second.peer);
    }
    if (at != nic.leaf) return false;
    for (const auto& port : way) ++on_port[port];
    return true;
  }

  // Gives every cable the rate with which an even use of all shortest ways takes as long as the tables.
  void slow_down(const std::vector<double>& by_table) {
    double even = 0, table = 0;
    for (std::size_t c = 0; c < found_.graph.cables.size(); ++c) {
      FabricGraph::Cable& cable = found_.graph.cables[c];
      double slower = 1;
      for (const std::size_t link : {2 * c, 2 * c + 1}) {
        even = std::max(even, even_[link] / (cable.count * cable.Gbps));
        table = std::max(table, by_table[link] / (cable.count * cable.Gbps));
        if (even_[link] > 0) slower = std::max(slower, by_table[link] / even_[link]);
      }
      slowed_.push_back(slower);
    }
    for (std::size_t c = 0; c < slowed_.size(); ++c) found_.graph.cables[c].Gbps /= slowed_[c];
    found_.table_load = even > 0 ? table / even : 1;
  }

  const FabricLinks& fabric_;
  std::map<std::string, std::int32_t> number_of_;  // of a switch, by its identifier
  std::map<std::string, std::vector<Nic>> nics_;   // of each host
  // cables between two switches, of which the first has the lower number; those of different rates are apart
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int64_t>> cables_of_;
  std::vector<Nic> taken_;    // NICs of all nodes that are taken
  std::vector<double> even_;  // for each link, the pairs of a leaf and a NIC that go over it, evenly divided
  std::vector<double> slowed_;
  FabricRoutes found_;
};

}  // namespace

std::optional<FabricRoutes> fabric_routes(const FabricLinks& fabric, const std::vector<std::string>& nodes,
                                          std::int64_t nics) {
  if (fabric.switches.size() > kMostSwitches) return std::nullopt;
  return RouteFinder(fabric).find(nodes, nics);
}

}  // namespace orrery
