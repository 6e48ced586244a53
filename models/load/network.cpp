// This file reads cluster.network: the leaf switches of a cluster, their uplinks, and how flows are routed over them.
#include "models/base/input_file.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kNetworkKeys[] = {
    {"file", "keys of this map from a file that orrery import-topology wrote", "fabric.yaml"},
    {"kind", "rails: a leaf for each NIC of a node; fat-tree: one for all", "rails", "rails | fat-tree"},
    {"leaf", "a leaf switch", "{nodes: 32, uplinks: 32, Gbps: 400}"},
    {"spine", "parts of the spine, whose links to each other are shared", "{leaves: 64, ratio: 7}"},
    {"routing", "choice among equal links", "{kind: ecmp, queue_pairs: 4}"},
    {"load", "share of the uplinks' rate that other jobs take", "0.3"},
};
constexpr SpecKey kLeafKeys[] = {
    {"nodes", "nodes on a leaf", "32"},
    {"uplinks", "links of a leaf to the spine", "32", "", "as many as NICs below it"},
    {"Gbps", "rate of an uplink, each way", "400", "", "a NIC's"},
};
constexpr SpecKey kSpineKeys[] = {
    {"leaves", "leaves (of each rail) that a part of the spine joins", "64"},
    {"ratio", "rate of a part's uplinks over what leaves the part", "7"},
};
constexpr SpecKey kRoutingKeys[] = {
    {"kind", "adaptive: even; ecmp: by a hash for each queue pair; d-mod-k: by destination", "ecmp",
     "adaptive | ecmp | d-mod-k"},
    {"queue_pairs", "queue pairs of a connection", "4"},
};
// More queue pairs than NCCL_IB_QPS_PER_CONNECTION accepts (128; NCCL's environment variables).
constexpr std::int64_t kMostQueuePairs = 128;

// Puts the keys of a map over those of another, and maps in it alike.
void put_over(SpecNode& all, const SpecNode& over) {
  for (std::size_t i = 0; i < over.keys.size(); ++i) {
    SpecNode& item = all.insert(over.keys[i]);
    const bool maps = item.kind == SpecNode::Kind::map && over.items[i].kind == SpecNode::Kind::map;
    if (maps)
      put_over(item, over.items[i]);
    else
      item = over.items[i];
  }
}

void move_to_line(SpecNode& node, int line) {
  node.line = line;
  for (SpecNode& item : node.items) move_to_line(item, line);
}

}  // namespace

// Returns the spec's map with the keys of the file that it names, where it does not give them itself. Values of the
// file have the line of the key `file`, which messages then name.
static SpecNode with_file(const SpecSection& cluster, const SpecNode& network) {
  const SpecNode* file = network.find("file");
  if (file == nullptr || file->kind != SpecNode::Kind::scalar) return network;
  const std::string path = beside(cluster.reader().path, file->text);
  const SpecNode root = parse_tree(read_input(path, kMostSettings), path);
  const SpecNode* in_file =
      root.find("cluster") != nullptr ? root.find("cluster")->find("network") : root.find("network");
  if (in_file == nullptr || in_file->kind != SpecNode::Kind::map)
    cluster.reader().fail(*file, "cluster.network.file", fmt::format("{} has no network", path));
  SpecNode all = *in_file;
  move_to_line(all, file->line);
  put_over(all, network);
  return all;
}

void read_network(const SpecSection& cluster, Cluster& c) {
  const SpecNode* given = cluster.find("network");
  if (given == nullptr) return;
  const SpecNode all = with_file(cluster, *given), *node = &all;
  Network& n = c.network.emplace();
  const SpecSection network(cluster.reader(), node, "cluster.network", kNetworkKeys);
  std::string file;
  network.take("file", file);
  network.take_named(
      "kind", n.kind, find_network_kind, [](NetworkKind k) { return name_of(k); }, "default");
  const SpecSection leaf(cluster.reader(), network.find("leaf"), "cluster.network.leaf", kLeafKeys);
  if (leaf.find("nodes") == nullptr) cluster.reader().fail(*node, "cluster.network.leaf.nodes", "missing");
  leaf.take_count("nodes", n.leaf_nodes, kMostRanks);
  n.leaf_uplinks = n.leaf_nodes * (n.kind == NetworkKind::rails ? 1 : std::max(1, c.nics));
  leaf.take_count("uplinks", n.leaf_uplinks, kMostRanks, "as many as NICs below a leaf");
  n.leaf_Gbps = c.nic_Gbps;
  leaf.take("Gbps", n.leaf_Gbps, "a NIC's");
  const SpecSection spine(cluster.reader(), network.find("spine"), "cluster.network.spine", kSpineKeys);
  spine.take_count("leaves", n.spine_leaves, kMostRanks);
  spine.take("ratio", n.spine_ratio);
  const SpecSection routing(cluster.reader(), network.find("routing"), "cluster.network.routing", kRoutingKeys);
  routing.take_named(
      "kind", n.routing, find_routing, [](Routing r) { return name_of(r); }, "default");
  routing.take_count("queue_pairs", n.queue_pairs, kMostQueuePairs);
  network.take("load", n.load);
}

Broken network_rules(const Spec& spec) {
  if (!spec.cluster.network) return {};
  const Network& n = *spec.cluster.network;
  if (!(n.leaf_Gbps > 0))
    return broken("cluster.network.leaf.Gbps", "cluster.network.leaf.Gbps: {} is no rate of a link", n.leaf_Gbps);
  if (!(n.spine_ratio >= 1))
    return broken("cluster.network.spine.ratio", "cluster.network.spine.ratio: {} is below 1", n.spine_ratio);
  if (!(n.load >= 0 && n.load < 1))
    return broken("cluster.network.load", "cluster.network.load: {} is no share from 0 to below 1", n.load);
  return {};
}

}  // namespace orrery
