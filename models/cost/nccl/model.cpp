#include "models/cost/nccl/model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "models/cost/nccl/rccl.h"

namespace orrery {

namespace {

using A = NcclAlgorithm;
using P = NcclProtocol;

// Correction factors of tree bandwidth for medium sizes, by log2(bytes / 64), 64 B to 256 MB (tuning.cc,
// treeCorrectionFactor; rows LL, LL128, Simple).
constexpr double kTreeFactor[kNcclProtocols][23] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};

double tree_factor(P p, Bytes bytes) {
  const int log2 = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes) >> 6)) - 1;
  return log2 < 0 || log2 >= 23 ? 1 : kTreeFactor[static_cast<std::size_t>(p)][log2];
}

// Returns the factor by which NCCL raises the latency of a ring all-reduce with protocol Simple over several nodes if
// each rank's part of a channel's data is 64 bytes or more (tuning.cc); 1 otherwise.
double ring_plateau(const NcclModel& m, Bytes bytes) {
  const double slice =
      static_cast<double>(bytes) / (static_cast<double>(m.graphs.collective_channels) * m.topology.ranks);
  if (m.topology.nodes == 1 || slice < 64) return 1;
  return m.topology.compute_capability < 80 ? 1.9 : 1.4;
}

// Number of threads of a thread block, and least number of bytes per thread, for each protocol: for smaller messages
// NCCL uses fewer blocks, then fewer threads (enqueue.cc).
constexpr int kThreads[kNcclProtocols] = {512, 640, 512};
constexpr std::int64_t kThreadBytes[kNcclProtocols] = {8, 8, 64};

int channels_for(const NcclModel& m, A a, P p, Bytes bytes) {
  if (a == A::nvls || a == A::nvls_tree) return m.graphs.nvls_channels;
  const auto i = static_cast<std::size_t>(p);
  const std::int64_t ranks = a == A::ring && p == P::ll ? m.topology.ranks : 1;
  const std::int64_t block = kThreads[i] * kThreadBytes[i] * ranks;
  return static_cast<int>(std::clamp<std::int64_t>(bytes / block, 1, m.graphs.collective_channels));
}

double share(double bytes, Seconds time, double GBps) {
  return time > 0 && GBps > 0 ? std::min(1.0, bytes / (time * GBps * 1e9)) : 0;
}

// Sets the shares of the rates of a node's NICs and of a GPU's NVLink from the bytes that cross them. In a ring, all
// data that a rank sends crosses every node boundary. In a tree, every node or rank except the root passes the buffer
// up and receives it back. With a switch that reduces (NVLS) the buffer crosses the links once.
void set_shares(const NcclModel& m, CollectiveKind kind, Bytes bytes, NcclChoice& c) {
  const NcclTopology& t = m.topology;
  const bool ring = c.algorithm == A::ring || c.algorithm == A::pat;
  const double buffer = static_cast<double>(bytes), passed = static_cast<double>(bytes_per_rank(kind, t.ranks, bytes));
  const double out = ring ? passed : static_cast<double>(bytes_per_rank(kind, t.nodes, bytes));
  const double local = ring ? passed : c.algorithm == A::tree ? 2 * buffer : buffer;
  if (t.nodes > 1) c.nic_share = share(out, c.seconds, t.nics * t.nic_GBps);
  if (t.ranks_per_node() > 1) c.nvlink_share = share(local, c.seconds, t.nvlink_GBps);
}

constexpr std::string_view kAlgorithmNames[] = {"tree", "ring", "nvls", "nvls_tree", "pat", "point_to_point", "direct"};
constexpr std::string_view kProtocolNames[] = {"ll", "ll128", "simple"};

}  // namespace

std::string_view name_of(NcclAlgorithm a) { return kAlgorithmNames[static_cast<std::size_t>(a)]; }
std::string_view name_of(NcclProtocol p) { return kProtocolNames[static_cast<std::size_t>(p)]; }

NcclModel nccl_model(const NcclTopology& topology) {
  NcclModel m{topology, nccl_graphs(topology), {}};
  m.table = nccl_table(topology, m.graphs);
  return m;
}

double nccl_time_us(const NcclModel& m, CollectiveKind kind, NcclAlgorithm a, NcclProtocol p, Bytes bytes) {
  const NcclRow& row = m.row(kind, a, p);
  if (row.bandwidth_GBps <= 0) return -1;
  double latency = row.latency_us, bandwidth = row.bandwidth_GBps;
  if (is_rccl(m.topology)) return latency + static_cast<double>(bytes) / (1000 * bandwidth);
  if (a == A::tree && kind == CollectiveKind::all_reduce) bandwidth *= tree_factor(p, bytes);
  if (a == A::ring && p == P::simple && kind == CollectiveKind::all_reduce) latency *= ring_plateau(m, bytes);
  return latency + static_cast<double>(bytes) / (1000 * bandwidth);
}

NcclChoice nccl_choose(const NcclModel& m, CollectiveKind kind, Bytes bytes) {
  NcclChoice best;
  if (m.topology.ranks <= 1) return best;
  if (kind == CollectiveKind::all_to_all) return nccl_all_to_all(m, bytes);
  // In a gather or scatter, the pieces of all ranks except the first rank's own pass through the link of the first
  // rank.
  if (is_star(kind))
    return nccl_point_to_point(m, m.topology.nodes == 1, ceil_div(bytes * (m.topology.ranks - 1), m.topology.ranks));
  if (kind == CollectiveKind::shift) return nccl_point_to_point(m, m.topology.nodes == 1, bytes);
  double least = 0;
  for (int a = 0; a < kNcclAlgorithms; ++a) {
    for (int p = 0; p < kNcclProtocols; ++p) {
      const double us = nccl_time_us(m, kind, static_cast<A>(a), static_cast<P>(p), bytes);
      if (us < 0 || (least > 0 && us >= least)) continue;
      least = us;
      best.algorithm = static_cast<A>(a);
      best.protocol = static_cast<P>(p);
    }
  }
  best.channels = channels_for(m, best.algorithm, best.protocol, bytes);
  best.nccl_seconds = least * 1e-6;
  best.seconds = nccl_corrected(m, kind, best, bytes);
  set_shares(m, kind, bytes, best);
  return best;
}

}  // namespace orrery
