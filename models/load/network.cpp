// This file reads cluster.network: the leaf switches of a cluster, their uplinks, and how flows are routed over them.
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kNetworkKeys[] = {
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

}  // namespace

void read_network(const SpecSection& cluster, Cluster& c) {
  const SpecNode* node = cluster.find("network");
  if (node == nullptr) return;
  Network& n = c.network.emplace();
  const SpecSection network(cluster.reader(), node, "cluster.network", kNetworkKeys);
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
