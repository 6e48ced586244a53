// This file reads cluster.network.graph: switches that are cabled in any way.
#include <numeric>

#include <fmt/format.h>

#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kGraphKeys[] = {
    {"switches", "switches of the fabric, which are numbered from 0", "3"},
    {"cables", "[SWITCH, SWITCH, LINKS, Gbps] for all links between two switches", "[[0, 2, 4, 400], [1, 2, 4, 400]]",
     "list of cables", "required"},
    {"nodes", "nodes in their order, and the switch that each of their NICs is cabled to",
     "[{nodes: 32, switches: [0, 1]}]", "list of maps", "required"},
};
constexpr SpecKey kGraphNodeKeys[] = {
    {"nodes", "nodes that follow each other and are cabled alike", "32", "", "1"},
    {"switches", "the switch of each NIC", "[0, 1]"},
};
constexpr std::int64_t kMostSwitches = 1'000'000, kMostParallel = 1'000'000, kMostNodes = 100'000;

class GraphReader {
 public:
  GraphReader(SpecReader& reader, const Cluster& cluster, FabricGraph& graph)
      : reader_(reader), cluster_(cluster), graph_(graph) {}

  void read(const SpecNode& node) {
    if (cluster_.nodes > kMostNodes)
      reader_.fail(node, "cluster.network.graph", fmt::format("a graph can have {} nodes", kMostNodes));
    const SpecSection section(reader_, &node, "cluster.network.graph", kGraphKeys);
    for (const std::string_view key : {"switches", "cables", "nodes"}) {
      if (section.find(key) == nullptr) reader_.fail(node, section.name(key), "missing");
    }
    std::int64_t switches = 0;
    section.take_count("switches", switches, kMostSwitches);
    graph_.switches = static_cast<std::int32_t>(switches);
    joined_.resize(static_cast<std::size_t>(switches));
    std::iota(joined_.begin(), joined_.end(), 0);
    read_cables(list_of(section, "cables"));
    read_nodes(list_of(section, "nodes"));
    section.record("cables", fmt::format("{}", graph_.cables.size()), section.find("cables"), "");
    section.record("nodes", fmt::format("{}", graph_.leaves.size()), section.find("nodes"), "");
  }

 private:
  const SpecNode& list_of(const SpecSection& section, std::string_view key) const {
    const SpecNode& node = *section.find(key);
    if (node.kind != SpecNode::Kind::list) reader_.fail(node, section.name(key), "a list is needed here");
    return node;
  }

  std::int32_t switch_of(const SpecNode& node, std::int64_t number, std::string_view name) const {
    if (number < 0 || number >= graph_.switches)
      reader_.fail(node, name, fmt::format("there is no switch {} of {}", number, graph_.switches));
    return static_cast<std::int32_t>(number);
  }

  void read_cables(const SpecNode& list) {
    constexpr std::string_view kName = "cluster.network.graph.cables";
    for (const SpecNode& item : list.items) {
      if (item.kind != SpecNode::Kind::list || item.items.size() != 4)
        reader_.fail(item, kName, "[SWITCH, SWITCH, LINKS, Gbps] is needed here");
      std::int64_t ends[2] = {}, links = 0;
      double Gbps = 0;
      for (std::size_t i = 0; i < 2; ++i) convert(reader_, item.items[i], std::string(kName), ends[i]);
      convert(reader_, item.items[2], std::string(kName), links);
      convert(reader_, item.items[3], std::string(kName), Gbps);
      if (links < 1 || links > kMostParallel) reader_.fail(item, kName, fmt::format("{} is no number of links", links));
      if (!(Gbps > 0)) reader_.fail(item, kName, fmt::format("{} Gbps is no rate of a link", Gbps));
      if (ends[0] == ends[1]) reader_.fail(item, kName, fmt::format("switch {} is joined to itself", ends[0]));
      const FabricGraph::Cable cable = {switch_of(item, ends[0], kName), switch_of(item, ends[1], kName),
                                        static_cast<std::int32_t>(links), Gbps};
      graph_.cables.push_back(cable);
      joined_[root_of(cable.from)] = root_of(cable.to);
    }
  }

  void read_nodes(const SpecNode& list) {
    for (const SpecNode& item : list.items) {
      const SpecSection section(reader_, &item, "cluster.network.graph.nodes", kGraphNodeKeys);
      std::int64_t nodes = 1;
      std::vector<std::int64_t> switches;
      section.take_count("nodes", nodes, kMostRanks);
      section.take("switches", switches);
      if (std::ssize(switches) != cluster_.nics)
        reader_.fail(item, section.name("switches"),
                     fmt::format("{} are named, a node has {} NICs", switches.size(), cluster_.nics));
      if (nodes > cluster_.nodes - std::ssize(graph_.leaves))
        reader_.fail(item, section.name("nodes"), fmt::format("these are more than the cluster's {}", cluster_.nodes));
      std::vector<std::int32_t> leaves;
      for (const std::int64_t number : switches) leaves.push_back(switch_of(item, number, section.name("switches")));
      graph_.leaves.insert(graph_.leaves.end(), static_cast<std::size_t>(nodes), leaves);
    }
    if (std::ssize(graph_.leaves) < cluster_.nodes)
      reader_.fail(list, "cluster.network.graph.nodes",
                   fmt::format("{} are cabled, the cluster has {}", graph_.leaves.size(), cluster_.nodes));
    // A NIC sends to those of the same number.
    for (std::size_t node = 1; node < graph_.leaves.size(); ++node) {
      for (std::size_t nic = 0; nic < graph_.leaves[node].size(); ++nic) {
        if (root_of(graph_.leaves[node][nic]) != root_of(graph_.leaves[0][nic]))
          reader_.fail(list, "cluster.network.graph.nodes",
                       fmt::format("no way joins NIC {} of nodes 0 and {}", nic, node));
      }
    }
  }

  // The switch that stands for all that are joined to one.
  std::int32_t root_of(std::int32_t at) {
    while (joined_[at] != at) at = joined_[at] = joined_[joined_[at]];
    return at;
  }

  SpecReader& reader_;
  const Cluster& cluster_;
  FabricGraph& graph_;
  std::vector<std::int32_t> joined_;  // for each switch another that it is joined to; itself if it stands for all
};

}  // namespace

void read_graph(SpecReader& reader, const SpecNode& node, const Cluster& cluster, FabricGraph& graph) {
  GraphReader(reader, cluster, graph).read(node);
}

}  // namespace orrery
