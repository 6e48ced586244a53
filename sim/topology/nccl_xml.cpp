// Reads the XML that NCCL writes: the topology of a node (NCCL_TOPO_DUMP_FILE: <system> of <cpu>, <pci>, <gpu>,
// <nvlink>, <nic> and <net>) or the graphs that it chose (NCCL_GRAPH_DUMP_FILE: <graphs> of <graph>).
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/property_tree/ptree.hpp>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "sim/topology/xml.h"

namespace orrery {
namespace {

using Tree = boost::property_tree::ptree;

struct Found {
  std::int64_t gpus = 0, nets = 0, shared = 1;
  std::int64_t linked = 0;  // largest number of other GPUs that a GPU has NVLinks to
  bool switched = false;    // whether NVLinks lead to a switch, which joins all GPUs
  double net_Mbps = 0;
};

// The PCI class of an NVSwitch, to which an <nvlink> leads (NCCL 2.28.9, src/graph/xml.cc); other links lead to a GPU.
constexpr std::string_view kSwitchClass = "0x0680";

std::int64_t count_below(const Tree& node, const char* tag) {
  std::int64_t sum = 0;
  for (const auto& [name, child] : node) sum += (name == tag ? 1 : 0) + count_below(child, tag);
  return sum;
}

// A PCIe switch that has NICs and GPUs below it, and no smaller one that has both, is shared by these GPUs.
void add(const Tree& node, Found& found) {
  for (const auto& [name, child] : node) {
    found.gpus += name == "gpu" ? 1 : 0;
    if (name == "gpu") found.linked = std::max(found.linked, static_cast<std::int64_t>(child.count("nvlink")));
    if (name == "nvlink")
      found.switched = found.switched || child.get<std::string>("<xmlattr>.tclass", "").starts_with(kSwitchClass);
    if (name == "net") {
      ++found.nets;
      found.net_Mbps = std::max(found.net_Mbps, child.get<double>("<xmlattr>.speed", 0));
    }
    if (name == "pci" && count_below(child, "net") > 0) {
      const bool smaller = std::any_of(child.begin(), child.end(), [](const auto& inner) {
        return inner.first == "pci" && count_below(inner.second, "net") > 0 && count_below(inner.second, "gpu") > 0;
      });
      if (!smaller) found.shared = std::max(found.shared, count_below(child, "gpu"));
    }
    add(child, found);
  }
}

ClusterFacts facts_of_system(const Tree& system, const std::string& path) {
  Found found;
  add(system, found);
  if (found.gpus == 0) throw Error(fmt::format("{}: has no <gpu>; give NCCL's dump of a node with GPUs", path));
  ClusterFacts facts;
  facts.gpus_per_node = found.gpus;
  facts.nvlink_domain = found.switched ? found.gpus : found.linked > 0 ? std::min(found.gpus, found.linked + 1) : 0;
  if (found.nets > 0) {
    facts.nics = found.nets;
    facts.gpus_per_pcie_switch = found.shared;
  }
  if (found.net_Mbps > 0) facts.nic_Gbps = found.net_Mbps / 1000;
  return facts;
}

// A dump of graphs tells nothing of a node but how many channels NCCL opened, and at which rates; `calibrate --import`
// makes a profile of it.
ClusterFacts facts_of_graphs(const Tree& graphs, const std::string& path) {
  ClusterFacts facts;
  for (const auto& [name, graph] : graphs) {
    if (name != "graph") continue;
    facts.remarks.push_back(
        fmt::format("{}: graph {} has {} channels of {} GB/s in a node, {} GB/s between nodes; orrery calibrate "
                    "--import makes a profile with these",
                    path, graph.get<int>("<xmlattr>.id", 0), graph.get<int>("<xmlattr>.nchannels", 0),
                    graph.get<double>("<xmlattr>.speedintra", 0), graph.get<double>("<xmlattr>.speedinter", 0)));
  }
  if (facts.remarks.empty()) throw Error(fmt::format("{}: has no <graph>", path));
  return facts;
}

}  // namespace

ClusterFacts nccl_topology_xml(const std::string& text, const std::string& path) {
  const Tree tree = read_nccl_xml(text, path);
  if (const auto system = tree.get_child_optional("system")) return facts_of_system(*system, path);
  if (const auto graphs = tree.get_child_optional("graphs")) return facts_of_graphs(*graphs, path);
  throw Error(fmt::format("{}: has neither <system> nor <graphs>; give a dump of NCCL", path));
}

}  // namespace orrery
