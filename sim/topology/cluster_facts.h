#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/network.h"
#include "sim/topology/fabric.h"

namespace orrery {

// Facts about a cluster that its own tools print, from which a spec's `cluster` can be written. Files of several kinds
// complete each other; where two state the same fact, the first one counts.
struct ClusterFacts {
  std::optional<std::int64_t> nodes, gpus_per_node, nics, nvlink_domain, gpus_per_pcie_switch;
  std::optional<double> nic_Gbps;
  std::optional<NetworkKind> kind;                       // whether the NICs of a node are on leaves of their own
  std::optional<std::int64_t> leaf_nodes, leaf_uplinks;  // of the leaf with fewest uplinks for each node
  std::optional<double> uplink_Gbps;
  std::optional<std::int64_t> spine_leaves;  // number of leaves that a part of the spine joins
  std::optional<Routing> routing;            // how switches choose among uplinks
  // number of evenly used uplinks that would be as full as the fullest one of a leaf is
  std::optional<std::int64_t> even_uplinks;
  // for each leaf that hosts name themselves, the number of these hosts
  std::map<std::string, std::int64_t> hosts_on_leaf;
  std::vector<std::vector<std::string>> names_by_leaf;  // names of the nodes of every leaf; empty: not known
  // names of the nodes in the order of their numbers, a leaf's nodes together; "-" is a place without a node
  std::vector<std::string> places;
  FabricLinks fabric;                // links between switches, and forwarding tables
  std::optional<FabricGraph> graph;  // of the fabric, if its leaves are not alike or not evenly used
  std::vector<std::string> remarks;  // sentences on what was read from which file, and what is uneven or unknown
};

// Adds the facts of `more` that `facts` lacks, and its remarks.
void complete(ClusterFacts& facts, const ClusterFacts& more);

// Lets a leaf whose forwarding tables use its uplinks unevenly have as many as if they were evenly used.
void count_uneven_uplinks(ClusterFacts& facts);

// Numbers the nodes whose names are known, leaf by leaf. Where leaves have fewer nodes than facts.leaf_nodes, places
// are left free. Does nothing but add a remark where names are doubled or do not fit on their leaves.
void number_nodes(ClusterFacts& facts);

// Keeps a fabric as a graph whose leaves are not alike, or which has links that are fuller than a leaf's uplinks;
// checks the forwarding tables, if there are any, against all shortest ways. Does nothing where the links are not
// known.
void route_fabric(ClusterFacts& facts);

// These functions read the text of one file each; `path` names the file in messages. They throw Error "path:line: what,
// and what to do" for a text that is not of the kind.
//   nvidia_smi_topology  nvidia-smi topo -m: how the GPUs and NICs of a node reach each other
//   nccl_topology_xml    NCCL_TOPO_DUMP_FILE or NCCL_GRAPH_DUMP_FILE: the same, and the rates of NICs
//   ibnetdiscover_links  ibnetdiscover: switches, hosts and links of an InfiniBand fabric, with their rates
//   forwarding_tables    ibroute or dump_lfts.sh: the port by which each switch sends to each destination
//   slurm_topology       topology.conf of Slurm's topology/tree or topology/block: nodes by switch or block
//   lldp_neighbours      lldpctl -f json of one host: the switch and port that each of its NICs is cabled to
ClusterFacts nvidia_smi_topology(std::string_view text, const std::string& path);
ClusterFacts nccl_topology_xml(const std::string& text, const std::string& path);
ClusterFacts ibnetdiscover_links(std::string_view text, const std::string& path);
ClusterFacts forwarding_tables(std::string_view text, const std::string& path);
ClusterFacts slurm_topology(std::string_view text, const std::string& path);
ClusterFacts lldp_neighbours(const std::string& text, const std::string& path);

// Reads files of these kinds, which their contents tell. Throws Error for a file of none of them.
ClusterFacts read_cluster_facts(const std::vector<std::string>& files);

// Returns the facts as a spec's `cluster` in YAML. The lines of `network` can be read on their own, by cluster.network:
// {file: ...}. Remarks are comments at the beginning.
std::string facts_text(const ClusterFacts& facts);

}  // namespace orrery
