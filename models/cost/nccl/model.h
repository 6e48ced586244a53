#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/base/units.h"
#include "models/collectives/algorithms.h"
#include "models/spec/cluster.h"

namespace orrery {

// NCCL 2.28.9's own performance model: which algorithm, protocol and number of channels it picks for a collective, and
// how long it expects it to take. Steps: nccl_topology (what a communicator looks like) -> nccl_graphs (what the graph
// search finds) -> nccl_model (a table of latency and bandwidth) -> nccl_choose. Ported from the formulas and tables of
// NCCL's src/graph (topo, search, connect, tuning) and src/enqueue; nothing here ever talks to NCCL. SHARP (CollNet),
// symmetric-memory kernels and copy-engine collectives are not covered. For older releases the table leaves out
// algorithms and protocols that they did not have; those that they had are priced alike.
enum class NcclAlgorithm : std::uint8_t { tree, ring, nvls, nvls_tree, pat, point_to_point };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };

inline constexpr int kNcclAlgorithms = 5;  // algorithms that NCCL has a model for: all but point_to_point
inline constexpr int kNcclProtocols = 3;

// The kind of the slowest hop of a path, nearest first: the GPU itself, NVLink, NVLink through another GPU, C2C, one
// PCIe switch, several, through the CPU to C2C, a NIC beside a neighbour over NVLink, the host bridge, between sockets.
enum class NcclPath : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys };

std::string_view name_of(NcclAlgorithm a);
std::string_view name_of(NcclProtocol p);

// One communicator on alike nodes. A node is what NVLink or a host joins: an NVL72 rack is one node of up to 72 ranks.
// Bandwidths are per direction and as NCCL counts them; a topology filled in by hand has every count at least 1 and
// every bandwidth that it uses above 0.
struct NcclTopology {
  int nodes = 1;
  int ranks = 1;
  int compute_capability = 90;
  bool amd_cpu = false;
  double nvlink_GBps = 0;           // rate of one GPU over all links; 0 = its ranks reach each other over PCIe alone
  double pcie_GBps = 0;             // rate of one GPU
  bool multicast = false;           // NVSwitch that adds and copies (NVLS)
  int nics = 1;                     // NICs of one node beside its ranks of this communicator
  double nic_GBps = 0;              // rate of one NIC, at most its PCIe
  bool shared_pcie_switch = false;  // two GPUs or more beside each NIC
  double net_latency_us = 0;        // time that the network plugin adds per hop
  bool shared_network = false;      // the network carries others' traffic, so that the slowest of many links is slow
  bool omni_path = false;           // with shared_network: Omni-Path, which more nodes slow down more
  // With shared_network, in a cloud: nodes of the whole job, over which its links spread.
  std::int64_t job_nodes = 0;
  std::int64_t nccl_minor = 28;  // NCCL 2.x; older releases know fewer algorithms and protocols

  int ranks_per_node() const { return nodes > 0 && ranks > nodes ? ranks / nodes : 1; }
};

// The search's result for one pattern: channels, GB/s of each inside and between nodes, and the worst paths.
struct NcclGraph {
  int channels = 0;
  double intra_GBps = 0;
  double inter_GBps = 0;
  NcclPath intra = NcclPath::loc;
  NcclPath inter = NcclPath::pix;
  bool plain_tree = false;     // pattern TREE, not BALANCED_TREE
  bool same_channels = false;  // every channel takes the same order
};

struct NcclGraphs {
  NcclGraph ring;
  NcclGraph tree;
  NcclGraph nvls;
  int collective_channels = 0;
  int nvls_channels = 0;
};

// One cell of NCCL's tuning table. bandwidth is payload bytes per time (algbw); 0 = not available.
struct NcclRow {
  double latency_us = 0;
  double bandwidth_GBps = 0;
};

using NcclTable = std::array<std::array<std::array<NcclRow, kNcclProtocols>, kNcclAlgorithms>, kCollectiveKinds>;

// Everything about a communicator that does not depend on the message, made once per communicator.
struct NcclModel {
  NcclTopology topology;
  NcclGraphs graphs;
  NcclTable table;

  const NcclRow& row(CollectiveKind k, NcclAlgorithm a, NcclProtocol p) const {
    return table[static_cast<std::size_t>(k)][static_cast<std::size_t>(a)][static_cast<std::size_t>(p)];
  }
};

// The choice for a transfer, and what the transfer takes. channels are thread blocks, about one SM each, lost to
// compute while it runs. Shares are the part of the node's NICs (those of the communicator) and of a GPU's NVLink,
// 0..1, that it uses while it runs.
struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  int channels = 0;
  Seconds nccl_seconds = 0;  // NCCL's own expectation, by which it chose
  Seconds seconds = 0;       // expected seconds, corrected by measurements (correction.cpp)
  double nic_share = 0;
  double nvlink_share = 0;
};

// GPUs of a job that reach each other without a NIC: its part of an NVLink domain if that is larger than a node, else
// the node. `nodes` and `ranks_per_node` below count in these.
int nccl_node_gpus(const Cluster& cluster);

// The rate of one NVLink as NCCL counts it.
double nccl_link_GBps(int compute_capability);

// The topology of a group of which every touched node holds ranks_per_node; or of which the i-th touched node holds
// members[i] (taken as alike nodes of the smallest number of members, with the true number of ranks). Never throws:
// nonsense becomes one rank.
NcclTopology nccl_topology(const Cluster& cluster, int nodes, int ranks_per_node);
NcclTopology nccl_topology(const Cluster& cluster, std::span<const int> members);

NcclGraphs nccl_graphs(const NcclTopology& topology);

// The tuning table for given graphs, e.g. those that a real run logged.
NcclTable nccl_table(const NcclTopology& topology, const NcclGraphs& graphs);

NcclModel nccl_model(const NcclTopology& topology);

// The choice of NCCL for a collective. bytes is the whole buffer: a rank's result in all_gather, its input in
// reduce_scatter and all_to_all. NCCL has no model of all_to_all and sends: those are alpha-beta (point_to_point.cpp);
// a shift is a send to the next rank, at the pace of the farthest.
NcclChoice nccl_choose(const NcclModel& model, CollectiveKind kind, Bytes bytes);

// NCCL's expectation for one way to do it, microseconds; negative if that way is not available.
double nccl_time_us(const NcclModel& model, CollectiveKind kind, NcclAlgorithm a, NcclProtocol p, Bytes bytes);

// The choice that nccl_choose returns for an all-to-all in which every rank sends bytes / ranks to each.
NcclChoice nccl_all_to_all(const NcclModel& model, Bytes bytes);

// Parts of the bytes that a rank's tokens bring to their experts: those that are left where a token goes once to every
// node and once to every rank that has any of its experts.
struct TokenCopies {
  double to_nodes = 1;  // part that crosses NICs
  double to_ranks = 1;  // part that crosses NVLink
};

// Tokens to experts in two stages that overlap (DeepEP, HybridEP: Zhao et al. 2025, Insights into DeepSeek-V3, section
// 4.3): over NICs to the ranks' counterparts on other nodes, from there over NVLink; rows that come back are summed on
// their way. Rates are those of NCCL's all-to-all.
NcclChoice two_stage_all_to_all(const NcclModel& model, Bytes bytes, const TokenCopies& copies);

// The time that measurements give to a choice (nccl_seconds, algorithm and protocol set).
Seconds nccl_corrected(const NcclModel& model, CollectiveKind kind, const NcclChoice& choice, Bytes bytes);

// The time that a collective of NCCL's model waits in a step beside its own time: members on several nodes do not come
// at once, as those of nccl-tests do.
Seconds nccl_late_members(const NcclModel& model, CollectiveKind kind);

// The time that each further tensor of one coalesced call takes beside its bytes, from the second on.
Seconds nccl_next_tensor(const NcclModel& model, CollectiveKind kind);

// One send with its receive, between ranks of the same node or of different nodes.
NcclChoice nccl_point_to_point(const NcclModel& model, bool same_node, Bytes bytes);

}  // namespace orrery
