#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// How a switch chooses among equal links. adaptive: packets are spread evenly over them. ecmp: a hash draws the link of
// every queue pair of a connection (equal-cost multi-path routing). d_mod_k: the link is the number of the destination
// modulo the number of links, by which the connections of a ring or an all-to-all spread evenly. pinned: the uplink is
// the number of the downlink that the destination has on its own leaf (path pinning: Gangidi et al. 2024, "RDMA over
// Ethernet for distributed AI training at Meta scale", section 4): even where a job has whole leaves.
enum class Routing : std::uint8_t { adaptive, ecmp, d_mod_k, pinned };

// The switches that a node's NICs are cabled to. fat_tree: all NICs of a leaf's nodes are on that leaf. rails: NIC i of
// every node is on a leaf of rail i, so that there is a leaf for each NIC of a node. rail_only: the same, without links
// between rails (Wang et al. 2023, arXiv:2307.12169). dragonfly: as fat_tree, but leaves form groups, and have links of
// their own to other groups in the place of a spine (Kim et al. 2008). dragonfly_plus: groups of leaves with a spine
// each, whose switches have the links to other groups (Shpiner et al. 2017). torus: no switches; nodes are cabled to
// their neighbours in a grid. graph: switches that are cabled in any way.
enum class NetworkKind : std::uint8_t { fat_tree, rails, rail_only, dragonfly, dragonfly_plus, torus, graph };
inline bool has_rails(NetworkKind k) { return k == NetworkKind::rails || k == NetworkKind::rail_only; }
inline bool has_groups(NetworkKind k) { return k == NetworkKind::dragonfly || k == NetworkKind::dragonfly_plus; }

// The links whose rate other jobs take a share of (Network::load): those of leaves, those above (between parts of the
// spine or groups of leaves), or both.
enum class LoadedLinks : std::uint8_t { everywhere, leaf, spine };

// Which of the cluster's nodes a job has, in the order of its ranks. contiguous: the first ones. scattered: one of each
// leaf in turn. random: drawn from all nodes by Network::seed. listed: those of Network::job_nodes.
enum class Placement : std::uint8_t { contiguous, scattered, random, listed };

// A link that is slower than its kind: the NICs of a node at Gbps each, or one of them if `nic` is not -1; a leaf (all
// leaves of its nodes, with rails) of which only `uplinks` links work, or whose uplink `link`, if that is not -1, has
// Gbps, 0: is down; of node and leaf one is -1. Or, if `plane` is not -1, what is down of this plane: the ports of a
// node, the switches of a leaf, or all of the plane if node and leaf are -1.
struct LinkFault {
  std::int64_t node = -1, leaf = -1;
  double Gbps = 0;
  std::int64_t uplinks = 0;
  std::int64_t plane = -1;
  std::int64_t nic = -1, link = -1;
};

// Returns what a fault strikes, such as "NIC 3 of node 17" or "plane 1 of leaf 2".
std::string name_of(const LinkFault& fault);

// A fault that holds for a time of a run only, in seconds from its begin. stops: it gives no rate or number of links,
// so that the node, NIC or leaf does not work at all.
struct TimedFault {
  LinkFault fault;
  double from_s = 0, until_s = 0;
  bool stops = false;
};

// A part of the spine: the leaves (with rails: of every rail) that it joins, and the rate of what comes up into it over
// the rate that leaves it.
struct SpineLevel {
  std::int64_t leaves = 1;
  double ratio = 1;
};

// The groups of a dragonfly. links: from a leaf to leaves of other groups, Gbps each way each; they are spread evenly
// over the other groups. With a spine in every group (dragonfly_plus), of `spines` switches, the links are theirs.
struct LeafGroups {
  std::int64_t leaves = 0, spines = 0, links = 0;
  double Gbps = 0;
};

// Switches that are cabled in any way, as a fabric's own tools print them. Switches are numbered from 0.
struct FabricGraph {
  // Links between two switches, Gbps each way each.
  struct Cable {
    std::int32_t from = 0, to = 0;
    std::int32_t count = 1;
    double Gbps = 0;
  };
  std::int32_t switches = 0;
  std::vector<Cable> cables;
  std::vector<std::vector<std::int32_t>> leaves;  // for each node, the switch that each of its NICs is cabled to
};

// A grid of nodes with a link between neighbours, Gbps each way. shape: nodes along each axis; nodes are numbered with
// the last axis fastest. wraps: whether the last node of a row is also a neighbour of the first.
struct Torus {
  std::vector<std::int64_t> shape;
  double Gbps = 0;
  bool wraps = true;
};

// The links between two sites, Gbps each way all together; ms: the time of a bit from one to the other.
struct SiteLink {
  std::int64_t from = 0, to = 0;
  double Gbps = 0, ms = 0, buffer_MiB = 4;
};

// The switches of a cluster: leaf switches, to which nodes are cabled, and the spine above them.
struct Network {
  NetworkKind kind = NetworkKind::rails;
  std::int64_t leaf_nodes = 0;    // number of nodes on a leaf
  std::int64_t leaf_uplinks = 0;  // number of links from a leaf to the spine
  double leaf_Gbps = 0;           // rate of one of these links, each way
  std::int64_t spine_leaves = 1;  // number of leaves (with rails: of every rail) that a part of the spine joins
  double spine_ratio = 1;         // rate of the uplinks of such a part's leaves over the rate that leaves the part
  std::vector<SpineLevel> upper_spine;  // the levels above: parts that join those of the level below
  // Time that each link above a leaf, with the switch at its end, adds to a message beyond NCCL's latency of a network.
  double latency_us = 0;
  // Number of networks, each with leaves and a spine of its own, over which the ports of every NIC are divided: a port
  // has 1/planes of the NIC's rate, and leaf_uplinks and leaf_Gbps are those of a leaf of one plane (Qian et al. 2024,
  // Alibaba HPN, section 4: two ports of 200 Gb/s; with rail-only the rails are planes besides).
  std::int64_t planes = 1;
  bool hashed_planes = false;  // whether a hash draws the plane of every queue pair; else all planes are used evenly
  Routing routing = Routing::adaptive;
  LeafGroups groups;                      // of a dragonfly
  Torus torus;                            // of a torus
  FabricGraph graph;                      // of a graph
  std::int64_t queue_pairs = 1;           // number of queue pairs of a connection, among which its bytes are divided
  std::optional<std::int64_t> hash_seed;  // of the hashes of ecmp and of planes; none: transfers take their mean time
  double load = 0;                        // share of the uplinks' rate that other jobs take
  LoadedLinks loaded = LoadedLinks::everywhere;
  // How long the other jobs fill the uplinks at once, which are then free until the next such burst; 0: their load is
  // spread evenly over time.
  double burst_ms = 0;
  // Share of the nominal rate of NICs and of links above them that transfers have at most; 1: as measured.
  double efficiency = 1;
  // A rank that gets bytes from more ranks of other nodes than incast_senders in an all-to-all gets them at
  // incast_share of its NICs' rate; 0 senders: never.
  std::int64_t incast_senders = 0;
  double incast_share = 1;
  // Rate at which every NIC of the job sends to storage beside the training's transfers; 0 unless a step is predicted
  // during which a checkpoint is written (checkpoint_flows.h).
  double storage_Gbps = 0;

  // Sites (buildings) of `site_nodes` nodes each, 0: all nodes are at one site. site_Gbps: rate of all links of a site
  // to the others, each way; site_ms: the time of a bit from one site to another, milliseconds.
  std::int64_t site_nodes = 0;
  // site_buffer_MiB: bytes that a connection between sites may have on their way, those of NCCL's buffer
  // (NCCL_BUFFSIZE) and of its queue pair.
  double site_Gbps = 0, site_ms = 0, site_buffer_MiB = 4;
  // Or sites of different sizes, in the order of the nodes, and the links between pairs of them; site_nodes is then 0.
  std::vector<std::int64_t> site_sizes;
  std::vector<SiteLink> site_links;

  Placement placement = Placement::contiguous;
  std::vector<std::int64_t> job_nodes;  // numbers of the job's nodes, if they are listed
  std::vector<LinkFault> faults;
  std::vector<TimedFault> timed_faults;  // which change no single step
  // Every NIC of the cluster is at fault_Gbps with probability fault_share, drawn by the seed.
  double fault_share = 0, fault_Gbps = 0;
  // Links that go down and come back by themselves (flap): mean time between two such outages of any link of the job,
  // 0: there are none; and how long one lasts; seconds.
  double flap_every_s = 0, flap_down_s = 0;
  std::int64_t seed = 1;  // of a random placement and of NICs at fault

  // Paths of the specs of other jobs that run on the cluster at the same time, each on the nodes that its own
  // cluster.network says.
  std::vector<std::string> jobs;
};

// The longest outage of a link that a transfer of a training job survives, seconds: InfiniBand resends what is lost
// after 4.3 s (4.096 us times two to the power of NCCL_IB_TIMEOUT, 20), and after the seventh time (NCCL_IB_RETRY_CNT)
// reports an error, with which the job ends (NCCL's documentation, environment variables).
inline constexpr double kResend_s = 4.096e-6 * (1 << 20);
inline constexpr int kMostResends = 7;
// Returns the seconds for which an outage of a link holds a job up: what was lost meanwhile is resent when a timer
// ends.
double held_by_flap(double down_s);

// Returns the share of the rate of leaves' uplinks, and of links above these, that other jobs leave.
double left_on_leaves(const Network& network);
double left_above(const Network& network);

// Returns the rates of the uplinks of a leaf that work (Network::faults), in the order of their numbers, over that of
// one without a fault. Of a leaf on which only so many links work, those that are named as down are not among them,
// and beyond these first the whole ones with the highest numbers, then the fastest of the slow ones.
std::vector<double> uplink_rates(const Network& network, std::int64_t leaf);

// Returns the sum of these rates.
double working_uplinks(const Network& network, std::int64_t leaf);

// Returns what is left of a link of `Gbps` that a transfer shares with one that takes up to `other`: all but this, or
// half of the link if that is more (max-min fairness).
double left_beside(double Gbps, double other);
// Returns the number of planes that work for two of the nodes, those which have fewest in common. ports: whether ports
// of nodes that are down count, or switches of leaves alone.
std::int64_t common_planes(const Network& network, const std::set<std::int64_t>& nodes, bool ports);

NetworkKind find_network_kind(std::string_view name);  // throws Error listing the known names
Routing find_routing(std::string_view name);           // throws Error listing the known names
Placement find_placement(std::string_view name);       // throws Error listing the known names
LoadedLinks find_loaded_links(std::string_view name);  // throws Error listing the known names
std::string_view name_of(LoadedLinks l);
std::string_view name_of(Placement p);
std::string_view name_of(NetworkKind k);
std::string_view name_of(Routing r);

}  // namespace orrery
