#include "models/cost/nccl/topology.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>

#include "models/base/error.h"
#include "models/cost/nccl/switches.h"

namespace orrery {
namespace {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Place, Hop>;
using Vertex = Graph::vertex_descriptor;

// Latencies of NCCL's LL protocol, which sends one flagged line per step: from GPU to GPU 0.6 us over NVLink, 1.0 us
// over PCIe, 2.7 us over a network (NCCL 2.28.9, src/graph/tuning.cc, hardware latencies of ring LL). Each of these
// latencies is divided evenly among the links of its path: GPU - NVSwitch - GPU; GPU - PCIe switch - GPU; GPU - PCIe
// switch - NIC - leaf and back.
constexpr Picoseconds kNvlinkHop = 300'000;
constexpr Picoseconds kPcieHop = 500'000;
constexpr Picoseconds kNetworkHop = (2'700'000 - 4 * kPcieHop) / 2;
// Latency of hops inside a node's host, which is 0 because the latency of the PCIe hop covers the complete path. Memory
// and drives have access times of their own, which are part of an op's cost and not of the route.
constexpr Picoseconds kHostHop = 0;

bool has_nvlink(const Cluster& c) { return c.nvlink_domain > 1 && c.gpu.nvlink_GBps > 0; }
std::int64_t node_of(const Cluster& c, std::int64_t gpu) { return gpu / c.gpus_per_node; }
std::int64_t home(const Cluster& c, const Place& p) { return p.part == PlaceKind::gpu ? node_of(c, p.index) : p.node; }

// The graph of one or two nodes and the switches that join them.
class ClusterGraph {
 public:
  explicit ClusterGraph(const Cluster& cluster) : c_(cluster) {}

  // Adds the graph of the node that a component belongs to. A GPU uses the NIC at its own position among the node's
  // NICs, so that the GPUs of one PCIe switch do not share a NIC; or, where rails are not joined, the NIC at the other
  // end's position.
  void add_node_of(const Place& end, const Place& other) {
    const std::int64_t node = home(c_, end);
    if (node < 0 || node >= c_.nodes)
      throw Error(fmt::format("cluster: there is no node {}; it has {}", node, c_.nodes));
    add_gpus(node);
    add_host(node);
    const std::int64_t count = std::min(c_.nics, c_.gpus_per_node);
    for (std::int64_t nic = 0; nic < count; ++nic) {
      const bool rail_change = c_.network && c_.network->kind == NetworkKind::rail_only && at(other, nic, count);
      if (at(end, nic, count) || rail_change) add_nic({node, nic, count}, home(c_, other));
    }
  }

  // Adds the switches and links between the NICs of two nodes.
  void join() {
    for (const NicsOfGpu& a : nics_) {
      for (const NicsOfGpu& b : nics_) {
        if (a.node != nics_.front().node || b.node == a.node) continue;
        if (c_.network && c_.network->kind == NetworkKind::rail_only && a.index != b.index) continue;
        for (const SwitchLink& l : links_between(c_, a, b)) link(l.from, l.to, l.GBps, l.latency, l.links);
      }
    }
  }

  const Graph& graph() const { return graph_; }

  Vertex find(const Place& place) const {
    const auto it = vertices_.find(place);
    if (it == vertices_.end()) throw Error(fmt::format("cluster: there is no {}; give its sizes", to_string(place)));
    return it->second;
  }

 private:
  // Whether a component uses this NIC.
  bool at(const Place& end, std::int64_t nic, std::int64_t count) const {
    return end.part != PlaceKind::gpu || nic == end.index % c_.gpus_per_node * count / c_.gpus_per_node;
  }

  std::int64_t pcie_switches() const { return ceil_div(c_.gpus_per_node, std::max(1, c_.gpus_per_pcie_switch)); }

  void add_gpus(std::int64_t node) {
    for (std::int64_t i = 0; i < c_.gpus_per_node; ++i) {
      const Place gpu{PlaceKind::gpu, 0, node * c_.gpus_per_node + i};
      link(gpu, {PlaceKind::pcie_switch, node, i / std::max(1, c_.gpus_per_pcie_switch)}, c_.gpu.pcie_GBps, kPcieHop);
      if (has_nvlink(c_))
        link(gpu, {PlaceKind::nvswitch, 0, gpu.index / nvlink_part(c_)}, pair_GBps(c_.gpu), kNvlinkHop);
    }
  }

  void add_host(std::int64_t node) {
    const Place cpu{PlaceKind::cpu, node, 0};
    for (std::int64_t i = 0; i < pcie_switches(); ++i) {
      link({PlaceKind::pcie_switch, node, i}, cpu, c_.gpu.pcie_GBps, kPcieHop);
    }
    if (c_.host) link(cpu, dram_place(node), c_.host->dram_GBps, kHostHop);
    for (const MemoryTier tier : kTiersBeyond) {
      const std::optional<Store>& store = store_of(c_, tier);
      if (!store) continue;
      arc(store_place(node, tier), cpu, store->read_GBps, kHostHop);
      arc(cpu, store_place(node, tier), store->write_GBps, kHostHop);
    }
  }

  // Adds a NIC and its links. NICs are spread evenly over the PCIe switches; a PCIe slot is taken to be at least as
  // fast as its NIC. other: the node at the other end.
  void add_nic(const NicsOfGpu& nics, std::int64_t other) {
    const double GBps = nic_GBps(c_, nics, other);
    const Place nic{PlaceKind::nic, nics.node, nics.index};
    link({PlaceKind::pcie_switch, nics.node, nics.index * pcie_switches() / nics.count}, nic,
         std::max(c_.gpu.pcie_GBps, GBps), kPcieHop);
    link(nic, switch_of(c_, nics), GBps, kNetworkHop);
    nics_.push_back(nics);
  }

  void link(const Place& a, const Place& b, double GBps, Picoseconds latency, int links = 1) {
    arc(a, b, GBps, latency, links);
    arc(b, a, GBps, latency, links);
  }

  // Adds one direction of a link; a link of rate 0 is left out.
  void arc(const Place& from, const Place& to, double GBps, Picoseconds latency, int links = 1) {
    const Vertex a = vertex(from), b = vertex(to);
    if (GBps > 0) boost::add_edge(a, b, Hop{from, to, GBps, latency, links}, graph_);
  }

  Vertex vertex(const Place& place) {
    const auto [it, is_new] = vertices_.try_emplace(place, 0);
    if (is_new) it->second = boost::add_vertex(place, graph_);
    return it->second;
  }

  const Cluster& c_;
  Graph graph_;
  std::map<Place, Vertex> vertices_;
  std::vector<NicsOfGpu> nics_;
};

// Returns the link (Hop) that leads from one component on a route to the next.
const Hop& hop_between(const Graph& graph, Vertex from, Vertex to) { return graph[boost::edge(from, to, graph).first]; }

}  // namespace

std::string to_string(const Place& place) {
  static constexpr std::array kNames = {"gpu",  "nvswitch", "pcie_switch", "cpu",   "dram", "store", "nic",
                                        "leaf", "spine",    "core",        "group", "site", "node"};
  const bool in_node =
      place.part != PlaceKind::gpu && place.part != PlaceKind::nvswitch && place.part < PlaceKind::leaf;
  const char* name = kNames[static_cast<std::size_t>(place.part)];
  const bool upper = place.part == PlaceKind::core && place.node > 0;  // a level above others of its kind
  return in_node || upper ? fmt::format("{} {}.{}", name, place.node, place.index)
                          : fmt::format("{} {}", name, place.index);
}

Place gpu_place(const Cluster& cluster, std::int64_t gpu) {
  const std::int64_t count = cluster.nodes * cluster.gpus_per_node;
  if (gpu < 0 || gpu >= count) throw Error(fmt::format("cluster: there is no gpu {}; it has {}", gpu, count));
  return {PlaceKind::gpu, 0, gpu};
}

Place dram_place(std::int64_t node) { return {PlaceKind::dram, node, 0}; }
Place store_place(std::int64_t node, MemoryTier tier) {
  return {PlaceKind::store, node, static_cast<std::int64_t>(index_behind_host(tier))};
}

Route route(const Cluster& cluster, const Place& from, const Place& to) {
  ClusterGraph builder(cluster);
  builder.add_node_of(from, to);
  if (home(cluster, to) != home(cluster, from)) {
    builder.add_node_of(to, from);
    builder.join();
  }
  const Graph& graph = builder.graph();
  const Vertex start = builder.find(from), end = builder.find(to);

  std::vector<Vertex> before(boost::num_vertices(graph));
  boost::dijkstra_shortest_paths(graph, start,
                                 boost::predecessor_map(before.data()).weight_map(boost::get(&Hop::latency, graph)));

  Route result{{}, cluster.gpu.memory_GBps, 0};
  for (Vertex v = end; v != start; v = before[v]) {
    if (before[v] == v) {
      throw Error(fmt::format("cluster: no way from {} to {}; give it NICs", to_string(from), to_string(to)));
    }
    result.hops.push_back(hop_between(graph, before[v], v));
  }
  std::reverse(result.hops.begin(), result.hops.end());
  if (!result.hops.empty()) result.GBps = result.hops.front().GBps;
  for (const Hop& hop : result.hops) {
    result.GBps = std::min(result.GBps, hop.GBps);
    result.latency += hop.latency;
  }
  return result;
}

Route route(const Cluster& cluster, std::int64_t from_gpu, std::int64_t to_gpu) {
  return route(cluster, gpu_place(cluster, from_gpu), gpu_place(cluster, to_gpu));
}

}  // namespace orrery
