// This file has a closed form of NCCL 2.28.9's graph search (src/graph/search.cc, topo.h, connect.cc) for identical
// nodes. Speeds and rules are NCCL's; the result of NCCL's search is derived here by counting how often a channel
// crosses a GPU's NVLink and a NIC. The result was compared, line by line, with 55 searches that the library ran
// (tests/data/nccl_2.28.9_reference.txt).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "models/cost/nccl/rccl.h"

namespace orrery {

namespace {

constexpr int kMaxChannels = 32;  // largest number of channels of one pattern before execution doubles them (search.cc)

// Speeds that the search tries, GB/s per channel (search.cc): inside nodes (kIntra) and between nodes (kInter), before
// Hopper (no suffix), for Hopper (90) and from Blackwell on (100).
constexpr double kIntra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kIntra90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kIntra100[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr double kInter[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
constexpr double kInter90[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
constexpr double kInter100[] = {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};

std::span<const double> speeds(const NcclTopology& t) {
  if (t.nodes > 1) {
    if (t.compute_capability >= 100) return kInter100;
    return t.compute_capability >= 90 ? std::span<const double>(kInter90) : kInter;
  }
  if (t.compute_capability >= 100) return kIntra100;
  return t.compute_capability >= 90 ? std::span<const double>(kIntra90) : kIntra;
}

// Returns the rate between CPU sockets, GB/s (topo.h): AMD 16, Skylake 10, Sapphire Rapids 22. On Intel, PCIe traffic
// between GPUs counts 6/5 times, so the rate is divided by 1.2.
double host_GBps(const NcclTopology& t) {
  if (t.amd_cpu) return 16;
  return (t.pcie_GBps >= 48 ? 22 : 10) / 1.2;
}

// Returns the rate at which a GPU can send to other GPUs of its node, GB/s; infinite for a single GPU.
double local_GBps(const NcclTopology& t) {
  if (t.ranks_per_node() == 1) return std::numeric_limits<double>::infinity();
  if (t.nvlink_GBps > 0) return t.nvlink_GBps;
  return t.one_pcie_switch ? t.pcie_GBps : std::min(t.pcie_GBps, host_GBps(t));
}

// Returns the largest speed in the list, which falls from first to last, that is at most `limit`; `limit` itself if all
// speeds are larger.
double fastest(std::span<const double> list, double limit) {
  for (const double s : list) {
    if (s <= limit + 1e-9) return s;
  }
  return limit;
}

// Returns the number of channels that leave the busiest GPU over NVLink. If every GPU has its own NIC, the GPU at which
// a channel ends rotates from channel to channel, and at that end the GPU sends to its NIC instead.
int crossings(const NcclTopology& t, int channels) {
  return t.nodes > 1 && t.nics >= t.ranks_per_node() ? channels - channels / t.ranks_per_node() : channels;
}

bool fits_nics(const NcclTopology& t, int channels, double GBps) {
  return t.nodes == 1 || channels <= t.nics * static_cast<int>(t.nic_GBps / GBps + 1e-9);
}

int ring_channels(const NcclTopology& t, double GBps) {
  int channels = kMaxChannels;
  while (channels > 0 && (crossings(t, channels) * GBps > local_GBps(t) || !fits_nics(t, channels, GBps))) --channels;
  if (t.nvlink_GBps <= 0) return std::min(channels, t.ranks_per_node() > 1 ? 1 : t.nics);
  return channels;
}

// Doubles the number of channels at half the speed each, if that keeps more SMs busy (NCCL's DupChannels).
void duplicate(const NcclTopology& t, NcclGraph& g) {
  if (g.intra_GBps < 25 || (t.compute_capability > 80 && g.intra_GBps < 50 && g.channels > 4)) return;
  const int channels = std::min(2 * g.channels, kMaxChannels);
  const double by = static_cast<double>(ceil_div(channels, g.channels));
  g.channels = channels;
  g.intra_GBps /= by;
  g.inter_GBps /= by;
}

void set_paths(const NcclTopology& t, NcclGraph& g) {
  const bool nvlink = t.nvlink_GBps > 0;
  if (t.ranks_per_node() > 1) g.intra = nvlink ? NcclPath::nvl : t.one_pcie_switch ? NcclPath::pix : NcclPath::sys;
  if (t.nodes > 1 && t.ranks_per_node() > 1 && !nvlink) g.inter = NcclPath::sys;
  g.same_channels = t.nodes == 1 || t.nics == 1 || !nvlink;
}

// Returns the type of the path by which a channel of the ring leaves a node. A channel enters and leaves a node by the
// same NIC (a GPU without this NIC forwards over NVLink to the GPU that has it: PXN), unless NVLink has no bandwidth
// left for the forwarding or both GPUs share a PCIe switch with the NIC.
NcclPath ring_exit(const NcclTopology& t, const NcclGraph& g) {
  const bool forwards = g.channels * g.intra_GBps <= local_GBps(t) && !t.shared_pcie_switch;
  return t.nodes > 1 && g.intra == NcclPath::nvl && forwards ? NcclPath::pxn : g.inter;
}

NcclGraph ring_graph(const NcclTopology& t) {
  NcclGraph best;
  const double top = t.nodes > 1 ? std::min(t.nic_GBps, local_GBps(t)) : local_GBps(t);
  for (const double s : speeds(t)) {
    if (s > top + 1e-9) continue;
    // The search over speeds stops when the channels use all of NVLink's bandwidth, or when the speed per channel has
    // fallen to about half of that of the best graph so far.
    const double total = best.channels * best.intra_GBps;
    if (best.channels > 0 && (total >= local_GBps(t) || s <= .49 * best.intra_GBps)) break;
    const int channels = ring_channels(t, s);
    if (channels * s > total) best = {channels, s, s};
  }
  // If all listed speeds are too high for the links, one channel at the links' rate is used.
  if (best.channels == 0) best = {1, top, top};
  set_paths(t, best);
  best.inter = ring_exit(t, best);
  duplicate(t, best);
  return best;
}

// Returns the next higher speed in the list, or the same speed if there is none.
double faster(std::span<const double> list, double GBps) {
  const auto at = std::find_if(list.begin(), list.end(), [&](double s) { return s <= GBps; });
  return at == list.begin() || at == list.end() ? GBps : *(at - 1);
}

// Raises `rate`, the speed of a channel inside nodes, step by step through the list of speeds, until it is at least
// twice `other`, the channel's speed between nodes, or until the next speed exceeds `limit`. In the same way it raises
// the speed between nodes, with that inside nodes as `other`.
void raise(std::span<const double> list, double limit, double other, double& rate) {
  for (double next = faster(list, rate); rate < 2 * other && next > rate && next <= limit; next = faster(list, rate)) {
    rate = next;
  }
}

// Returns the tree graph, which has as many channels as the ring. If there are only two GPUs, joined by NVLink, they
// take turns as the root of a channel's tree, so that each sends in half of the channels.
NcclGraph tree_graph(const NcclTopology& t, int channels) {
  const auto list = speeds(t);
  const bool pair = t.nodes == 1 && t.ranks_per_node() == 2 && t.nvlink_GBps > 0;
  const int crossed = pair ? (channels + 1) / 2 : crossings(t, channels);
  const double local = local_GBps(t) / std::max(1, crossed);
  const double net = t.nodes > 1 ? t.nic_GBps / static_cast<double>(ceil_div(channels, t.nics)) : local;
  const double s = fastest(list, std::min(local, net));
  NcclGraph g{channels, s, s};
  if (t.nodes > 1) raise(list, local, g.inter_GBps, g.intra_GBps);
  set_paths(t, g);
  g.same_channels = g.same_channels && !pair;
  g.plain_tree = t.nodes > 1 && t.compute_capability >= 90;
  return g;
}

// Returns the NVLS graph, which has one channel per head. A head is the GPU that handles one part of the data at the
// switch; that part crosses the head's NVLink once more than it crosses the NVLinks of the other GPUs.
NcclGraph nvls_graph(const NcclTopology& t) {
  if (!t.multicast || t.compute_capability < 90) return {0, 0, 0, NcclPath::loc, NcclPath::loc};
  const auto list = speeds(t);
  const int heads = std::min(t.nodes > 1 ? t.nics : kMaxChannels, std::min(kMaxChannels, t.ranks_per_node()));
  const double net = t.nodes > 1 ? t.nic_GBps : std::numeric_limits<double>::infinity();
  const double s = fastest(list, std::min(t.nvlink_GBps / (heads + 1), net));
  NcclGraph g{heads, s, s};
  raise(list, net, g.intra_GBps, g.inter_GBps);
  set_paths(t, g);
  g.same_channels = false;
  g.plain_tree = t.ranks_per_node() == 1;
  return g;
}

int collective_channels(const NcclTopology& t, const NcclGraph& ring) {
  const int channels = std::min(64, 2 * ring.channels);
  const bool more = t.compute_capability >= 90 && t.nodes > 1 && ring.intra_GBps > 45 && channels < 16;
  return more ? 2 * channels : channels;
}

int nvls_channels(const NcclTopology& t) {
  if (!t.multicast || t.compute_capability < 90) return 0;
  if (t.compute_capability < 100) return 16;
  return t.nodes > 1 ? 32 : 24;
}

// NVLink speed in GB/s per link as NCCL counts it (topo.h), for GPUs from a compute capability on.
struct LinkSpeed {
  int compute_capability;
  double GBps;
  double nominal_GBps;  // rate in data sheets, for GPUs whose data file does not state the number of links
};
constexpr LinkSpeed kLinks[] = {{100, 40.1, 50}, {90, 20.6, 25}, {86, 12.0, 14}, {70, 20.0, 25}, {0, 18.0, 20}};

LinkSpeed link_speed(int compute_capability) {
  return *std::find_if(std::begin(kLinks), std::end(kLinks) - 1,
                       [&](const LinkSpeed& l) { return compute_capability >= l.compute_capability; });
}

double nvlink_GBps(const Gpu& gpu) {
  const LinkSpeed link = link_speed(gpu.compute_capability);
  return link.GBps * (gpu.nvlink_links > 0 ? gpu.nvlink_links : std::round(gpu.nvlink_GBps / link.nominal_GBps));
}

// Returns the rate of a PCIe x16 link as NCCL counts it: 12 GB/s for gen 3 and twice as much for every further
// generation (topo.cc). The generation follows from the GPU's nominal PCIe rate of 15.75, 31.5... GB/s; a GPU without a
// known PCIe rate counts as gen 5.
double pcie_GBps(const Gpu& gpu) {
  if (gpu.pcie_GBps <= 0) return 48;
  return 12 * std::exp2(std::round(std::log2(gpu.pcie_GBps / 15.75)));
}

// Returns the microseconds that the network plugin of a fabric adds per hop (NCCL adds them once, twice for Simple).
// The plugins of InfiniBand and RoCE report 0 (src/transport/net_ib). EFA: with 75, NCCL's 75 us for an all-reduce of 1
// MiB over 4 nodes of B200 become 375; measured 378 (ml-engineering, network/README.md, P6-B200 over EFA v4, NCCL
// 2.27.7). Ethernet: 87 is what a small all-gather over 2 nodes of A3 Mega takes in addition to NCCL's 23 us (GKE A3
// Mega guide: 110 us, 64 KiB, TCPXO).
double net_latency_us(Fabric fabric) {
  switch (fabric) {
    case Fabric::efa:
      return 75;
    case Fabric::ethernet:
      return 87;
    case Fabric::infiniband:
    case Fabric::roce:
    case Fabric::omni_path:
      return 0;
  }
  return 0;
}

// Sets the NICs that `members` GPUs use on a node of `gpus` GPUs. If a GPU has several NICs, they count as one (NCCL
// merges ports, and plugins group the NICs of a GPU).
void set_nics(const Cluster& c, int gpus, int members, NcclTopology& t) {
  const double hosts = static_cast<double>(gpus) / std::max(1, c.gpus_per_node);
  const double nics = std::max(1.0, c.nics * hosts);
  const double per_gpu = std::max(1.0, nics / gpus);
  t.nics = std::max(1, static_cast<int>(std::ceil(std::min(nics, double(gpus)) * members / gpus)));
  t.nic_GBps = std::min(per_gpu * std::max(.08, c.nic_Gbps / 8), t.pcie_GBps);
}

// Returns whether every pair of GPUs of a node has a link of its own: a GPU whose data file states fewer links than the
// node has other GPUs (MI250X) reaches some of them through others.
bool joins_all_pairs(const Cluster& c) { return c.gpu.nvlink_links == 0 || c.gpu.nvlink_links >= c.gpus_per_node - 1; }

// Sets the rates of direct links in a group of so many GPUs of a node. Where not every pair has one, a group of any
// size is taken to have the rate of all links of a GPU together, which bounds the rings through it.
void set_direct_links(const Cluster& c, int members, NcclTopology& t) {
  const bool all = joins_all_pairs(c);
  t.link_GBps = all ? c.gpu.link_GBps : c.gpu.nvlink_GBps / std::max(1, members - 1);
  t.nvlink_GBps = all ? (c.gpus_per_node - 1) * t.link_GBps : c.gpu.nvlink_GBps;
}

}  // namespace

double nccl_link_GBps(int compute_capability) { return link_speed(compute_capability).GBps; }

double nccl_local_GBps(const NcclTopology& t) {
  return is_rccl(t) ? (t.ranks_per_node() - 1) * t.link_GBps : t.nvlink_GBps;
}

double nccl_nvlink_GBps(const Cluster& c) {
  return nccl_topology(c, 1, std::min(c.nvlink_domain, nccl_node_gpus(c))).nvlink_GBps;
}

int nccl_node_gpus(const Cluster& c) { return std::max({1, c.gpus_per_node, nvlink_part(c)}); }

NcclTopology nccl_topology(const Cluster& c, int nodes, int ranks_per_node) {
  const int gpus = nccl_node_gpus(c);
  const int members = std::clamp(ranks_per_node, 1, gpus);
  NcclTopology t;
  t.nodes = std::max(1, nodes);
  t.ranks = t.nodes * members;
  t.compute_capability = c.gpu.compute_capability;
  t.amd_cpu = c.amd_cpu;
  t.nvlink_GBps = members <= c.nvlink_domain ? nvlink_GBps(c.gpu) : 0;
  if (c.gpu.link_GBps > 0 && members <= c.nvlink_domain) set_direct_links(c, members, t);
  t.pcie_GBps = pcie_GBps(c.gpu);
  t.multicast = t.nvlink_GBps > 0 && c.gpu.compute_capability >= 90 && c.nvlink_domain >= 8;
  t.shared_pcie_switch = c.gpus_per_pcie_switch > 1 && members > 1;
  t.one_pcie_switch = members <= c.gpus_per_pcie_switch;
  t.net_latency_us = net_latency_us(c.fabric);
  t.shared_network = c.nic_Gbps <= 100 && (c.fabric == Fabric::efa || c.fabric == Fabric::omni_path);
  t.omni_path = c.fabric == Fabric::omni_path;
  t.job_nodes = t.shared_network && !t.omni_path ? c.nodes : 0;
  set_nics(c, gpus, members, t);
  return t;
}

NcclTopology nccl_topology(const Cluster& c, std::span<const int> members) {
  int least = std::numeric_limits<int>::max(), ranks = 0, nodes = 0;
  for (const int m : members) {
    if (m <= 0) continue;
    least = std::min(least, m);
    ranks += m;
    ++nodes;
  }
  NcclTopology t = nccl_topology(c, nodes, nodes > 0 ? least : 1);
  t.ranks = std::max(t.ranks, ranks);
  return t;
}

NcclGraphs nccl_graphs(const NcclTopology& t) {
  if (is_rccl(t)) return rccl_graphs(t);
  NcclGraphs g;
  g.ring = ring_graph(t);
  g.tree = tree_graph(t, g.ring.channels);
  g.nvls = nvls_graph(t);
  count_channels(t, g);
  return g;
}

void count_channels(const NcclTopology& t, NcclGraphs& g) {
  g.collective_channels = is_rccl(t) ? g.ring.channels : collective_channels(t, g.ring);
  g.nvls_channels = is_rccl(t) ? 0 : nvls_channels(t);
}

}  // namespace orrery
