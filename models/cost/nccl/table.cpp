// This file computes NCCL 2.28.9's tuning table: latency and bandwidth of every algorithm and protocol
// (src/graph/tuning.cc). The table was compared with the 862 rows that the library printed for 55 topologies
// (tests/data/nccl_2.28.9_reference.txt).
#include <algorithm>
#include <bit>
#include <cmath>

#include "models/cost/nccl/constants.h"
#include "models/cost/nccl/rccl.h"

namespace orrery {

namespace {

using A = NcclAlgorithm;
using P = NcclProtocol;

// Limits of bandwidth in GB/s, also from ncclTunerConstantsDefaults: rows Volta, Ampere, Hopper, Blackwell; columns for
// 1, 2 and more nodes. Limits are per channel except the limits of LL, which are for all channels.
using Limits = std::array<std::array<double, 3>, 4>;
constexpr Limits kLl = {{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr Limits kRingLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
constexpr Limits kTreeLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr Limits kTree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr Limits kNvlsTree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}}};
constexpr double kNvlsEfficiency[] = {0, 0, .85, .74};

std::size_t architecture(const NcclTopology& t) {
  return t.compute_capability < 80 ? 0 : t.compute_capability < 90 ? 1 : t.compute_capability < 100 ? 2 : 3;
}

double limit(const Limits& limits, const NcclTopology& t, std::size_t row) {
  return limits[row][static_cast<std::size_t>(std::clamp(t.nodes, 1, 3) - 1)];
}

double limit(const Limits& limits, const NcclTopology& t) { return limit(limits, t, architecture(t)); }

// Returns the largest bandwidth, GB/s, of NCCL's protocol LL. Between nodes it depends only on the host's CPU: row 0 of
// the table is for Intel, row 1 for AMD.
double ll_limit(const NcclTopology& t) {
  const std::size_t host = t.amd_cpu ? 1 : 0;
  return limit(kLl, t, t.nodes == 1 ? architecture(t) : host);
}

int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }

bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
}

const NcclGraph& graph_of(const NcclGraphs& g, A a) {
  if (a == A::ring) return g.ring;
  return a == A::nvls || a == A::nvls_tree ? g.nvls : g.tree;  // PAT uses the channels and bandwidth of the tree graph
}

bool supports(CollectiveKind kind, A a) {
  if (a == A::ring) return kind != CollectiveKind::all_to_all && kind != CollectiveKind::shift;
  if (kind == CollectiveKind::all_reduce) return a != A::pat;
  return gathers(kind) && (a == A::pat || a == A::nvls);
}

// The minor version of NCCL 2.x that introduced each algorithm or protocol: LL128 (release notes 2.5.6), NVLS (2.17.1),
// NVLSTree (2.18.1), PAT (2.23.4); trees came in 2.4.
constexpr std::int64_t kLl128Since = 5, kNvlsSince = 17, kNvlsTreeSince = 18, kPatSince = 23, kTreeSince = 4;

bool known(const NcclTopology& t, A a, P p) {
  const std::int64_t since = a == A::nvls        ? kNvlsSince
                             : a == A::nvls_tree ? kNvlsTreeSince
                             : a == A::pat       ? kPatSince
                             : a == A::tree      ? kTreeSince
                                                 : 0;
  return t.nccl_minor >= since && (p != P::ll128 || t.nccl_minor >= kLl128Since);
}

bool ll128_works(const NcclTopology& t, const NcclGraph& g) {
  const NcclPath farthest = t.compute_capability >= 90 ? NcclPath::pxn : NcclPath::pxb;
  return t.compute_capability >= 70 && g.intra <= NcclPath::nvb && g.inter <= farthest;
}

bool available(const NcclTopology& t, const NcclGraph& g, CollectiveKind kind, A a, P p) {
  if (!supports(kind, a) || !known(t, a, p)) return false;
  if (p == P::ll128 && !ll128_works(t, g)) return false;
  if ((a == A::nvls || a == A::nvls_tree || a == A::pat) && p != P::simple) return false;
  // NVLS is available on one node only: between nodes it needs SHARP
  if (a == A::nvls) return t.nodes == 1 && g.channels >= 2;
  if (a == A::nvls_tree) return t.nodes > 1 && g.channels >= 2 && t.ranks_per_node() > 1;
  if (a == A::pat) return t.nodes > 1 && t.ranks_per_node() == 1 && t.compute_capability >= 60;
  return true;
}

double nvls_channel_GBps(const NcclTopology& t, const NcclGraph& g, CollectiveKind kind, A a) {
  const double c = g.channels, local = t.ranks_per_node();
  const double both_ways = kind == CollectiveKind::all_reduce ? 2 : (local - 1) / local;
  const double intra = g.intra_GBps * kNvlsEfficiency[architecture(t)] * (c - 1) / c * both_ways;
  if (a == A::nvls) return std::min(intra, g.inter_GBps);
  return std::min({intra, g.inter_GBps * (t.nodes <= 2 ? 2 : 1), limit(kNvlsTree, t)});
}

double ring_bus(const NcclTopology& t, double bus, double channels, P p) {
  if (p == P::ll) return std::min(ll_limit(t), .5 * bus);
  return p == P::ll128 ? std::min(.92 * bus, channels * limit(kRingLl128, t)) : bus;
}

double tree_bus(const NcclTopology& t, const NcclGraph& g, double bus, P p) {
  bus = std::min(.92 * bus, g.channels * limit(kTree, t));
  if (p == P::ll) bus = std::min(bus / 3.8, ll_limit(t));
  // share: the fraction of a tree's bandwidth that the LL128 protocol reaches. Between nodes this is the data in each
  // LL128 line, 120 of 128 bytes; within a node it is 7/9, which includes the reduction.
  const double share = t.nodes == 1 ? 7.0 / 9 : 120.0 / 128;
  if (p == P::ll128) bus = std::min(bus * share, g.channels * limit(kTreeLl128, t));
  return g.plain_tree ? .85 * bus : bus;
}

double bandwidth_GBps(const NcclTopology& t, const NcclGraph& g, CollectiveKind kind, A a, P p) {
  const bool switched = a == A::nvls || a == A::nvls_tree;
  const double speed = t.nodes <= 2 ? g.intra_GBps : g.inter_GBps;
  double bus = g.channels * (switched ? nvls_channel_GBps(t, g, kind, a) : speed);
  if (a == A::ring) bus = ring_bus(t, bus, g.channels, p);
  if (a == A::tree) bus = tree_bus(t, g, bus, p);
  if (a == A::pat) bus *= .75;
  if (a == A::tree) return .5 * bus;
  if (a != A::ring && gathers(kind)) return bus;
  return bus * t.ranks / nccl_ring_steps(kind, t.ranks);
}

const NcclLatencies& local_us(const NcclGraph& g) { return g.intra == NcclPath::nvl ? kNcclNvlink_us : kNcclPcie_us; }

double ring_latency_us(const NcclTopology& t, const NcclGraph& g, CollectiveKind kind, P p, double intra,
                       double inter) {
  const int all = nccl_ring_steps(kind, t.ranks);
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) {
    const NcclLatencies& hop = t.nodes > 1 ? kNcclNet_us : local_us(g);
    return g.same_channels ? nccl_ring_us(hop, p) : all * nccl_us(hop, p == P::simple ? A::tree : A::ring, p);
  }
  const int between = t.nodes == 1 ? 0 : kind == CollectiveKind::all_reduce ? 2 * (t.nodes - 1) : t.nodes - 1;
  const double overhead = t.nodes == 1 ? 0 : (t.amd_cpu ? 2.0 : 1.0) * (p == P::simple ? 3 : 1);
  return (all - between) * std::max(intra, overhead) + between * inter;
}

double latency_us(const NcclTopology& t, const NcclGraph& g, CollectiveKind kind, A a, P p) {
  const int local = t.ranks_per_node();
  const double base = nccl_us(kNcclStart_us, a, p), intra = nccl_us(local_us(g), a, p);
  const double inter = nccl_us(kNcclNet_us, local == 1 ? A::tree : a, p) + t.net_latency_us * (p == P::simple ? 2 : 1);
  const int depth = floor_log2(t.nodes);
  switch (a) {
    case A::ring:
      return base + ring_latency_us(t, g, kind, p, intra, inter);
    case A::tree:
      return base + 2 * ((local - 1) * intra + depth * inter);
    case A::nvls:
      return base + intra;
    case A::nvls_tree:
      return base + intra + 2 * depth * inter;
    case A::pat:
      return base + depth * inter / 3.5 + 2.8 * t.ranks;
    case A::point_to_point:
    case A::direct:
      break;
  }
  return 0;
}

}  // namespace

int nccl_ring_steps(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::all_reduce) return 2 * (ranks - 1);
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ? ranks : ranks - 1;
}

NcclTable nccl_table(const NcclTopology& t, const NcclGraphs& graphs) {
  if (is_rccl(t)) return rccl_table(t);
  NcclTable table{};
  if (t.ranks <= 1) return table;
  for (std::size_t k = 0; k < table.size(); ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    for (std::size_t a = 0; a < table[k].size(); ++a) {
      const auto algorithm = static_cast<A>(a);
      const NcclGraph& g = graph_of(graphs, algorithm);
      for (std::size_t p = 0; p < table[k][a].size(); ++p) {
        const auto protocol = static_cast<P>(p);
        if (!available(t, g, kind, algorithm, protocol)) continue;
        table[k][a][p] = {latency_us(t, g, kind, algorithm, protocol), bandwidth_GBps(t, g, kind, algorithm, protocol)};
      }
    }
  }
  return table;
}

}  // namespace orrery
