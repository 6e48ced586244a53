// This file reads cluster.network: the leaf switches of a cluster, their uplinks, and how flows are routed over them.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/load/network/network.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kNetworkKeys[] = {
    {"name", "built-in network (orrery list networks)", "llama3-roce", "name"},
    {"file", "keys of this map from a file that orrery import-topology wrote", "fabric.yaml"},
    {"kind", "rails: a leaf for each NIC of a node; fat-tree: one for all; rail-only: rails that are not joined",
     "rails", "rails | fat-tree | rail-only | dragonfly | dragonfly+ | torus | graph"},
    {"leaf", "a leaf switch", "{nodes: 32, uplinks: 32, Gbps: 400}"},
    {"spine", "parts of the spine, whose links to each other are shared; a list: level by level",
     "{leaves: 64, ratio: 7}", "map, or list of maps", "-"},
    {"latency_us", "time that each link above a leaf, with the switch at its end, adds to a message", "0.5"},
    {"groups", "groups of leaves (dragonfly, dragonfly+)", "{leaves: 16, links: 8, Gbps: 400}", "", "none"},
    {"torus", "grid of nodes without switches (torus)", "{shape: [8, 8, 4], Gbps: 400}", "", "none"},
    {"graph", "switches that are cabled in any way, as orrery import-topology writes them (graph)",
     "{switches: 1, cables: [], nodes: []}", "", "none"},
    {"planes", "networks with leaves and a spine of their own, over which the ports of every NIC are divided", "2"},
    {"routing", "choice among equal links", "{kind: ecmp, queue_pairs: 4}"},
    {"load", "share of the uplinks' rate that other jobs take", "0.3"},
    {"pods", "sets of GPUs whose links to each other are shared (cluster.oversubscription)", "{gpus: 3072, ratio: 7}",
     "", "none"},
    {"efficiency", "share of the nominal rate of NICs and links that the transport gives at most", "0.95"},
    {"incast", "all-to-alls slow a receiver of many flows, as where packets are lost", "{senders: 16, share: 0.7}", "",
     "none"},
    {"sites", "buildings, and the links between them; a list: each of its own size",
     "{nodes: 1024, Gbps: 12800, ms: 5}", "map, or list of maps", "-"},
    {"node_names", "names of the cluster's nodes, leaf by leaf, as Slurm writes them; - is a free place", "'n[0-31]'",
     "", "none"},
    {"placement", "which nodes the job has: the first ones, one of each leaf in turn, any, or those that a file names",
     "scattered", "contiguous | scattered | random | {nodes: FILE}"},
    {"job_nodes", "numbers of the job's nodes in the order of its ranks, in the place of a placement", "[3, 17]"},
    {"neighbours", "other jobs that run at the same time", "{jobs: [b.yaml]}", "", "none"},
    {"faults", "links that are slow, by name or by share", "[{node: 17, Gbps: 100}]", "list of maps, or a map", "none"},
    {"flaps", "links that go down for a short time, which run-length counts", "{every_s: 3600, down_s: 2}", "", "none"},
    {"seed", "seed of a random placement and of a share of faults", "1"},
};
constexpr SpecKey kTorusKeys[] = {
    {"shape", "nodes along each axis", "[8, 8, 4]"},
    {"Gbps", "rate of a link between neighbours, each way", "400", "", "the NICs' of a node over its links"},
    {"wraps", "whether rows are closed to rings", "false"},
};
constexpr SpecKey kPodKeys[] = {
    {"gpus", "GPUs of a pod", "3072"},
    {"ratio", "rate below a pod's uplinks over theirs", "7"},
};
constexpr SpecKey kIncastKeys[] = {
    {"senders", "ranks of other nodes that may send to a rank at once without loss", "16"},
    {"share", "share of its NICs' rate that a rank gets from more", "0.7"},
};
constexpr SpecKey kFlapKeys[] = {
    {"every_s", "mean time between two outages of any link of the job", "3600"},
    {"down_s", "time for which the link is down", "2"},
};
constexpr SpecKey kLeafKeys[] = {
    {"nodes", "nodes on a leaf", "32"},
    {"uplinks", "links of a leaf to the spine", "32", "", "as many as NICs below it"},
    {"Gbps", "rate of an uplink, each way", "400", "", "a NIC's in one plane"},
};
constexpr SpecKey kRoutingKeys[] = {
    {"kind",
     "adaptive: even; ecmp: by a hash for each queue pair; d-mod-k: by destination; pinned: by the destination's "
     "downlink",
     "ecmp", "adaptive | ecmp | d-mod-k | pinned"},
    {"queue_pairs", "queue pairs of a connection", "4"},
    {"planes", "how a NIC uses its planes: evenly, or the plane of every queue pair by a hash", "hashed",
     "even | hashed", "hashed with ecmp, else even"},
    {"seed", "draws the hashes of connections, and the step is that of the draw, not the mean over draws", "1", "",
     "none"},
};
constexpr std::string_view kPlaneChoices[] = {"even", "hashed"};
// As many as the network that DeepSeek describes has (arXiv:2505.09343).
constexpr std::int64_t kMostPlanes = 8;
// More queue pairs than NCCL_IB_QPS_PER_CONNECTION accepts (128; NCCL's environment variables).
constexpr std::int64_t kMostQueuePairs = 128;

}  // namespace

// Reads the key of a network's kind that only this kind has, such as `torus`, which must be there for the kind and is
// refused with others.
const SpecNode* of_kind(const SpecSection& network, const SpecNode& at, std::string_view key, bool wanted) {
  const SpecNode* node = network.find(key);
  if (node == nullptr && wanted) network.reader().fail(at, network.name(key), "missing");
  if (node != nullptr && !wanted)
    network.reader().fail(
        *node, network.name(key),
        fmt::format("needs cluster.network.kind: {}", key == "groups" ? "dragonfly or dragonfly+" : key));
  return node;
}

static void read_torus(const SpecSection& network, const SpecNode& at, const Cluster& c, Network& n) {
  const SpecNode* node = of_kind(network, at, "torus", n.kind == NetworkKind::torus);
  if (node == nullptr) return;
  const SpecSection torus(network.reader(), node, "cluster.network.torus", kTorusKeys);
  if (torus.find("shape") == nullptr) network.reader().fail(*node, torus.name("shape"), "missing");
  torus.take("shape", n.torus.shape);
  n.torus.Gbps = usual_Gbps(c, n.torus);
  torus.take("Gbps", n.torus.Gbps, "the NICs' of a node over its links");
  torus.take("wraps", n.torus.wraps);
}

static void read_fabric_graph(const SpecSection& network, const SpecNode& at, const Cluster& c, Network& n) {
  const SpecNode* node = of_kind(network, at, "graph", n.kind == NetworkKind::graph);
  if (node != nullptr) read_graph(network.reader(), *node, c, n.graph);
}

static void read_leaf(const SpecSection& network, const SpecNode& at, const Cluster& c, Network& n) {
  const SpecSection leaf(network.reader(), network.find("leaf"), "cluster.network.leaf", kLeafKeys);
  const bool other = std::ranges::any_of(std::array{"sites", "faults", "flaps", "pods", "efficiency", "incast"},
                                         [&](const char* key) { return network.find(key) != nullptr; });
  if (n.kind == NetworkKind::torus || n.kind == NetworkKind::graph) {
    for (const std::string_view key : {"leaf", "spine", "routing", "planes", "latency_us"}) {
      if (const SpecNode* switches = network.find(key); switches != nullptr)
        network.reader().fail(
            *switches, network.name(key),
            n.kind == NetworkKind::torus ? "a torus has no switches" : "a graph says all of its links");
    }
    return;
  }
  if (network.find("leaf") == nullptr && other) {
    for (const std::string_view key : {"kind", "spine", "planes", "routing", "load", "neighbours", "latency_us"}) {
      if (const SpecNode* alone = network.find(key); alone != nullptr)
        network.reader().fail(*alone, network.name(key), "has no effect without cluster.network.leaf");
    }
    return;
  }
  if (network.find("leaf") == nullptr)
    network.reader().fail(at, "cluster.network",
                          "it says nothing of the network's shape: give leaf: {nodes: N}, or a torus or graph with its "
                          "kind, or the name of a built-in one (orrery list networks)");
  if (leaf.find("nodes") == nullptr) network.reader().fail(at, "cluster.network.leaf.nodes", "missing");
  leaf.take_count("nodes", n.leaf_nodes, kMostRanks);
  n.leaf_uplinks = n.leaf_nodes * (has_rails(n.kind) ? 1 : std::max(1, c.nics));
  leaf.take_count("uplinks", n.leaf_uplinks, kMostRanks, "as many as NICs below a leaf");
  network.take_count("planes", n.planes, kMostPlanes);
  n.leaf_Gbps = c.nic_Gbps / static_cast<double>(n.planes);
  leaf.take("Gbps", n.leaf_Gbps, "a NIC's in one plane");
}

static void read_routing(const SpecSection& network, Network& n) {
  const SpecSection routing(network.reader(), network.find("routing"), "cluster.network.routing", kRoutingKeys);
  routing.take_named(
      "kind", n.routing, find_routing, [](Routing r) { return name_of(r); }, "default");
  routing.take_count("queue_pairs", n.queue_pairs, kMostQueuePairs);
  std::string planes = n.routing == Routing::ecmp ? "hashed" : "even";
  routing.take_word("planes", planes, kPlaneChoices);
  n.hashed_planes = planes == "hashed";
  routing.take("seed", n.hash_seed);
}

static void read_pods(const SpecSection& cluster, const SpecSection& network, Cluster& c) {
  const SpecNode* node = network.find("pods");
  if (node == nullptr) return;
  if (cluster.find("oversubscription") != nullptr)
    network.reader().fail(*node, network.name("pods"), "cluster.oversubscription says the same; leave one of them out");
  const SpecSection pods(network.reader(), node, "cluster.network.pods", kPodKeys);
  for (const std::string_view key : {"gpus", "ratio"}) {
    if (pods.find(key) == nullptr) network.reader().fail(*node, pods.name(key), "missing");
  }
  pods.take_count("gpus", c.oversubscribed_above_gpus, kMostRanks);
  pods.take("ratio", c.oversubscription);
  if (!(c.oversubscription >= 1))
    network.reader().fail(*node, pods.name("ratio"), fmt::format("{} is below 1", c.oversubscription));
}

static void read_transport(const SpecSection& network, Network& n) {
  network.take("efficiency", n.efficiency);
  const SpecNode* node = network.find("incast");
  if (node == nullptr) return;
  const SpecSection incast(network.reader(), node, "cluster.network.incast", kIncastKeys);
  for (const std::string_view key : {"senders", "share"}) {
    if (incast.find(key) == nullptr) network.reader().fail(*node, incast.name(key), "missing");
  }
  incast.take_count("senders", n.incast_senders, kMostRanks);
  incast.take("share", n.incast_share);
}

static void read_flaps(const SpecSection& network, Network& n) {
  const SpecNode* node = network.find("flaps");
  if (node == nullptr) return;
  const SpecSection flaps(network.reader(), node, "cluster.network.flaps", kFlapKeys);
  for (const std::string_view key : {"every_s", "down_s"}) {
    if (flaps.find(key) == nullptr) network.reader().fail(*node, flaps.name(key), "missing");
  }
  flaps.take("every_s", n.flap_every_s);
  flaps.take("down_s", n.flap_down_s);
}

void read_network(const SpecSection& cluster, Cluster& c) {
  const SpecNode* given = cluster.find("network");
  if (given == nullptr) return;
  const SpecNode all = network_with_base(cluster, *given, c), *node = &all;
  Network& n = c.network.emplace();
  const SpecSection network(cluster.reader(), node, "cluster.network", kNetworkKeys);
  std::string file;
  network.take("name", file);
  network.take("file", file);
  network.take_named(
      "kind", n.kind, find_network_kind, [](NetworkKind k) { return name_of(k); }, "default");
  read_leaf(network, *node, c, n);
  read_groups(network, *node, c, n);
  read_torus(network, *node, c, n);
  read_fabric_graph(network, *node, c, n);
  read_neighbours(network, n);
  read_spine(network, n);
  network.take("latency_us", n.latency_us);
  read_routing(network, n);
  read_sites(network, n);
  read_placement(network, n);
  read_faults(network, c, n);
  read_flaps(network, n);
  network.take("seed", n.seed);
  read_transport(network, n);
  read_pods(cluster, network, c);
  // Pods alone are what cluster.oversubscription describes.
  if (std::ranges::all_of(node->keys, [](const std::string& key) { return key == "pods"; })) c.network.reset();
}

}  // namespace orrery
