#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/base/units.h"
#include "models/collectives/algorithms.h"
#include "models/spec/cluster.h"

namespace orrery {

// NCCL 2.28.9's own performance model: the algorithm, protocol and number of channels that NCCL picks for a collective,
// and the time that NCCL expects. Steps: nccl_topology (the nodes and links of a communicator) -> nccl_graphs (the
// result of NCCL's graph search) -> nccl_model (a table of latencies and bandwidths) -> nccl_choose. Ported from the
// formulas and tables of NCCL's src/graph (topo, search, connect, tuning) and src/enqueue; nothing here calls NCCL.
// SHARP (CollNet), symmetric-memory kernels and copy-engine collectives are not covered. For older releases the table
// leaves out algorithms and protocols that they lack; all others have the times of 2.28.9.
enum class NcclAlgorithm : std::uint8_t { tree, ring, nvls, nvls_tree, pat, point_to_point, direct };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };

// Number of algorithms for which NCCL has a performance model; these come first in NcclAlgorithm.
inline constexpr int kNcclAlgorithms = 5;
inline constexpr int kNcclProtocols = 3;

// The type of the slowest hop of a path, from the nearest to the farthest: the GPU itself, NVLink, NVLink through
// another GPU, C2C, one PCIe switch, several PCIe switches, through the CPU to C2C, a NIC that is reached over NVLink
// through the neighbouring GPU, the PCIe host bridge, the link between CPU sockets.
enum class NcclPath : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys };

std::string_view name_of(NcclAlgorithm a);
std::string_view name_of(NcclProtocol p);

// One communicator on identical nodes. A node is a set of GPUs joined by NVLink or by a host: an NVL72 rack is one node
// of up to 72 ranks. Bandwidths are per direction, and as NCCL counts them. In a topology that a caller fills in, every
// count must be at least 1 and every bandwidth that is used above 0.
struct NcclTopology {
  int nodes = 1;
  int ranks = 1;
  int compute_capability = 90;
  bool amd_cpu = false;
  // rate of one GPU over all its NVLinks; 0: the ranks of a node reach each other over PCIe only
  double nvlink_GBps = 0;
  // rate of the direct link between each pair of GPUs of a node (rccl.h); 0: a switch joins the GPUs
  double link_GBps = 0;
  double pcie_GBps = 0;             // rate of one GPU's PCIe link
  bool multicast = false;           // whether an NVSwitch reduces and multicasts (NVLS)
  int nics = 1;                     // number of NICs of one node that this communicator's ranks use
  double nic_GBps = 0;              // rate of one NIC, at most that of its PCIe link
  bool shared_pcie_switch = false;  // whether two or more GPUs share a PCIe switch with each NIC
  double net_latency_us = 0;        // time that the network plugin adds per hop, microseconds
  // whether other jobs use the network too, so that collectives over more links are slowed down more
  bool shared_network = false;
  bool omni_path = false;  // whether the shared network is Omni-Path, which slows down as nodes are added
  // if the network is a cloud's shared network: number of nodes of the complete job, over whose links the job's traffic
  // spreads; else 0
  std::int64_t job_nodes = 0;
  std::int64_t nccl_minor = 28;  // minor version of NCCL 2.x; older releases know fewer algorithms and protocols
  bool one_pcie_switch = false;  // whether a PCIe switch joins the ranks of a node, which need not pass a CPU

  int ranks_per_node() const { return nodes > 0 && ranks > nodes ? ranks / nodes : 1; }
};

// The result of NCCL's graph search for one pattern (ring, tree or NVLS): the number of channels, the GB/s of each
// channel inside and between nodes, and the slowest types of path.
struct NcclGraph {
  int channels = 0;
  double intra_GBps = 0;
  double inter_GBps = 0;
  NcclPath intra = NcclPath::loc;
  NcclPath inter = NcclPath::pix;
  bool plain_tree = false;     // whether the pattern is TREE instead of BALANCED_TREE
  bool same_channels = false;  // whether every channel visits the ranks in the same order
};

struct NcclGraphs {
  NcclGraph ring;
  NcclGraph tree;
  NcclGraph nvls;
  int collective_channels = 0;
  int nvls_channels = 0;
};

// One entry of NCCL's tuning table. bandwidth_GBps: payload bytes over time (algbw in nccl-tests); 0: the combination
// is not available.
struct NcclRow {
  double latency_us = 0;
  double bandwidth_GBps = 0;
};

using NcclTable = std::array<std::array<std::array<NcclRow, kNcclProtocols>, kNcclAlgorithms>, kCollectiveKinds>;

// The model of one communicator: all figures that do not depend on the message, so that they are computed once.
struct NcclModel {
  NcclTopology topology;
  NcclGraphs graphs;
  NcclTable table;

  const NcclRow& row(CollectiveKind k, NcclAlgorithm a, NcclProtocol p) const {
    return table[static_cast<std::size_t>(k)][static_cast<std::size_t>(a)][static_cast<std::size_t>(p)];
  }
};

// The algorithm and protocol chosen for a transfer, and the resources that the transfer takes. channels is the number
// of thread blocks, each of which takes about one SM from compute while the transfer runs. Shares are the fractions,
// 0..1, of the rates of the communicator's NICs on a node, and of a GPU's NVLink, that the transfer uses while it runs.
struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  int channels = 0;
  Seconds nccl_seconds = 0;  // NCCL's own estimate of the time, by which it chose the algorithm
  Seconds seconds = 0;       // expected time in a step: NCCL's estimate corrected by measurements (correction.cpp)
  double nic_share = 0;
  double nvlink_share = 0;
  // share of the rate of uplinks (leaf switches', pods', sites') that all groups of the transfer's kind use together
  double uplink_share = 0;
  std::uint8_t uplink_level = 0;  // the level of uplinks of which this is the share, the fullest one
};

// Returns the choice of the same transfer with another duration; the shares of the links' rates are scaled so that the
// transfer still moves the same bytes.
inline NcclChoice lasting(NcclChoice choice, Seconds time) {
  choice.nic_share *= choice.seconds / time;
  choice.nvlink_share *= choice.seconds / time;
  choice.uplink_share *= choice.seconds / time;
  choice.seconds = time;
  return choice;
}

// Returns the number of a job's GPUs that reach each other without a NIC: the number in an NVLink domain if that is
// larger than a node, else the number in a node. The parameters `nodes` and `ranks_per_node` in this file count each
// set of that many GPUs as one node.
int nccl_node_gpus(const Cluster& cluster);

// Returns the rate at which a rank sends to all other ranks of its node together, GB/s: that of its NVLinks, or of its
// direct links to these ranks; 0 if there are none.
double nccl_local_GBps(const NcclTopology& topology);

// Returns the rate of a GPU's NVLinks in one direction as NCCL counts it, GB/s, of which NcclChoice::nvlink_share is a
// share; 0 if the cluster has none.
double nccl_nvlink_GBps(const Cluster& cluster);

// Returns the number of steps in which a ring of `ranks` ranks carries out a collective.
int nccl_ring_steps(CollectiveKind kind, int ranks);

// Returns the rate of one NVLink, GB/s per direction, as NCCL counts it.
double nccl_link_GBps(int compute_capability);

// Returns the topology of a communicator that has ranks_per_node ranks on each of its nodes, or members[i] ranks on the
// i-th node. If the members[i] differ, every node is taken to have the smallest of these numbers of ranks, while the
// total number of ranks is their true sum. Never throws: for invalid numbers it returns one rank.
NcclTopology nccl_topology(const Cluster& cluster, int nodes, int ranks_per_node);
NcclTopology nccl_topology(const Cluster& cluster, std::span<const int> members);

NcclGraphs nccl_graphs(const NcclTopology& topology);
// Sets the numbers of channels that NCCL opens for given graphs.
void count_channels(const NcclTopology& topology, NcclGraphs& graphs);

// Returns the tuning table for given graphs, for example graphs that a run on a cluster logged.
NcclTable nccl_table(const NcclTopology& topology, const NcclGraphs& graphs);

NcclModel nccl_model(const NcclTopology& topology);

// Returns NCCL's choice for a collective. bytes is the size of the complete buffer: a rank's result in all_gather, its
// input in reduce_scatter and all_to_all. NCCL has no model of all_to_all and sends; their time is latency plus bytes /
// rate (point_to_point.cpp). A shift is a send to the next rank by every rank, and takes as long as the slowest of
// these sends does.
NcclChoice nccl_choose(const NcclModel& model, CollectiveKind kind, Bytes bytes);

// Returns the time that NCCL expects for one algorithm and protocol, microseconds; negative if that combination is not
// available.
double nccl_time_us(const NcclModel& model, CollectiveKind kind, NcclAlgorithm a, NcclProtocol p, Bytes bytes);

// Returns NCCL's choice for an all-to-all in which every rank sends bytes / ranks to each other rank.
NcclChoice nccl_all_to_all(const NcclModel& model, Bytes bytes);

// The fractions of the bytes of an expert dispatch that are sent if no token is sent twice to the same receiver: a
// token goes once to every node and once to every rank that has any of the token's experts, instead of once to each
// expert.
struct TokenCopies {
  double to_nodes = 1;  // fraction of an expert dispatch's bytes that crosses NICs
  double to_ranks = 1;  // fraction of an expert dispatch's bytes that crosses NVLink
};

// Returns the time and resources of an all-to-all between tokens and experts in two overlapping stages (DeepEP,
// HybridEP: Zhao et al. 2025, Insights into DeepSeek-V3, section 4.3): over NICs to the rank at the same position on
// another node, and from there over NVLink. On the way back from the experts, the results of a token are summed at each
// stage. Rates are those of NCCL's all-to-all.
NcclChoice two_stage_all_to_all(const NcclModel& model, Bytes bytes, const TokenCopies& copies);

// Returns the expected time of a chosen algorithm, seconds: NCCL's own estimate corrected by measurements;
// nccl_seconds, algorithm and protocol of the choice must be set.
Seconds nccl_corrected(const NcclModel& model, CollectiveKind kind, const NcclChoice& choice, Bytes bytes);

// Returns the time of the kernel of a choice alone, seconds: the same without what a step adds, as nccl-tests launches
// kernels one after another.
Seconds nccl_kernel(const NcclModel& model, CollectiveKind kind, const NcclChoice& choice, Bytes bytes);

// Returns the time that a step adds to a collective's kernel, seconds (FittedCollectives::start_us).
Seconds nccl_step_start(const NcclModel& model);

// Returns the time that a collective waits in a training step in addition to its own time, seconds: ranks on several
// nodes do not arrive at the same time in a step, while they do in nccl-tests.
Seconds nccl_late_members(const NcclModel& model, CollectiveKind kind);

// Returns the additional time of each tensor after the first in one coalesced call, without the time of the tensor's
// bytes, seconds.
Seconds nccl_next_tensor(const NcclModel& model, CollectiveKind kind);

// Returns the time and resources of one send and its receive, between ranks of the same node or of different nodes.
NcclChoice nccl_point_to_point(const NcclModel& model, bool same_node, Bytes bytes);

}  // namespace orrery
