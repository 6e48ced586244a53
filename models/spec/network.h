#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

// How a switch chooses among equal links. adaptive: packets are spread evenly over them. ecmp: a hash draws the link of
// every queue pair of a connection (equal-cost multi-path routing). d_mod_k: the link is the number of the destination
// modulo the number of links, by which the connections of a ring or an all-to-all spread evenly.
enum class Routing : std::uint8_t { adaptive, ecmp, d_mod_k };

// The switches that a node's NICs are cabled to. fat_tree: all NICs of a leaf's nodes are on that leaf. rails: NIC i of
// every node is on a leaf of rail i, so that there is a leaf for each NIC of a node.
enum class NetworkKind : std::uint8_t { fat_tree, rails };

// The switches of a cluster: leaf switches, to which nodes are cabled, and the spine above them.
struct Network {
  NetworkKind kind = NetworkKind::rails;
  std::int64_t leaf_nodes = 0;    // number of nodes on a leaf
  std::int64_t leaf_uplinks = 0;  // number of links from a leaf to the spine
  double leaf_Gbps = 0;           // rate of one of these links, each way
  std::int64_t spine_leaves = 1;  // number of leaves (with rails: of every rail) that a part of the spine joins
  double spine_ratio = 1;         // rate of the uplinks of such a part's leaves over the rate that leaves the part
  Routing routing = Routing::adaptive;
  std::int64_t queue_pairs = 1;  // number of queue pairs of a connection, among which its bytes are divided
  double load = 0;               // share of the uplinks' rate that other jobs take
};

NetworkKind find_network_kind(std::string_view name);  // throws Error listing the known names
Routing find_routing(std::string_view name);           // throws Error listing the known names
std::string_view name_of(NetworkKind k);
std::string_view name_of(Routing r);

}  // namespace orrery
