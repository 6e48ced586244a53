// This file computes the times of sends, receives and all-to-alls, for which NCCL has no performance model. Latencies
// are NCCL's own constants; bandwidths are its link speeds times the fraction that measurements reach.
#include <algorithm>
#include <bit>
#include <cmath>

#include "models/cost/nccl/constants.h"
#include "models/cost/nccl/fitted.h"
#include "models/cost/nccl/one_node.h"
#include "models/cost/nccl/rccl.h"

namespace orrery {

namespace {

using P = NcclProtocol;

// A GPU with so many peers on other nodes reaches no more than FittedCollectives::most_to_many_peers_GBps.
constexpr int kManyPeers = 9;

constexpr int kNetChannels = 2;

constexpr int kDirectChannels = 4;  // channels to a peer over a direct link, as many as RCCL's rings have for a link

// Returns the number of channels to one peer: over NVLink twice the number of the GPU's NVLinks, rounded up to a power
// of two (init.cc); over PCIe and NICs 2.
int channels_to_peer(const NcclTopology& t, bool same_node) {
  if (!same_node || t.nvlink_GBps <= 0) return kNetChannels;
  if (is_rccl(t)) return kDirectChannels;
  const auto twice = static_cast<unsigned>(std::lround(2 * t.nvlink_GBps / nccl_link_GBps(t.compute_capability)));
  return static_cast<int>(std::min<unsigned>(kMaxSendChannels, std::bit_ceil(std::max(1U, twice))));
}

// Returns the rate inside a node, GB/s, for one pair of GPUs alone or for all pairs at the same time (`all`). Over
// PCIe, all-to-all reaches a quarter of a pair's rate: 12 of 48 GB/s on gen 5, 24 of 96 on gen 6 (GTC25 S72583).
double local_GBps(const NcclTopology& t, bool all) {
  if (is_rccl(t)) return all ? fitted_collectives().links_to_all_part * nccl_local_GBps(t) : t.link_GBps;
  if (t.nvlink_GBps > 0) return fitted_collectives().nvlink_to_all_part * t.nvlink_GBps;
  return all ? t.pcie_GBps / 4 : t.pcie_GBps;
}

// Returns the rate in GB/s at which a node's NICs send in an all-to-all between nodes.
double far_GBps(const NcclTopology& t) {
  const double reached = fitted_collectives().nic_to_all_part * t.nics * t.nic_GBps;
  const int local = t.ranks_per_node(), far = t.ranks - local;
  return far < kManyPeers ? reached : std::min(reached, fitted_collectives().most_to_many_peers_GBps * local);
}

// NCCL has no latencies of sends; they are taken to be those of rings. Every further peer costs one hop of LL, as small
// all-to-alls show: 6.6 + 15 * 2.7 = 47.1 us for 16 ranks that communicate only through NICs, measured 47.4 (nccl-tests
// alltoall_perf, 2 nodes of 8 RTX 6000D, NCCL 2.30.3, 8 KiB).
double hop_us(const NcclTopology& t, bool same_node, P p) {
  const NcclLatencies& local = t.nvlink_GBps > 0 ? kNcclNvlink_us : kNcclPcie_us;
  return nccl_ring_us(same_node ? local : kNcclNet_us, p);
}

}  // namespace

NcclChoice nccl_point_to_point(const NcclModel& m, bool same_node, Bytes bytes) {
  const NcclTopology& t = m.topology;
  const int most = channels_to_peer(t, same_node);
  const bool ll = bytes <= kLlBytesPerSendChannel * most;
  const Bytes chunk = ll ? kLlBytesPerSendChannel : same_node && t.nvlink_GBps > 0 ? kNvlinkSendChunk : kNetSendChunk;
  NcclChoice c;
  c.algorithm = NcclAlgorithm::point_to_point;
  c.protocol = ll ? P::ll : P::simple;
  c.channels = static_cast<int>(std::clamp<Bytes>(ceil_div(bytes, chunk), 1, most));
  const double GBps =
      same_node ? local_GBps(t, false) : std::min(fitted_collectives().nic_part * t.nic_GBps, t.pcie_GBps);
  const double kernel = is_rccl(t) ? rccl_send_start_us() : nccl_ring_us(kNcclStart_us, c.protocol);
  const double start = kernel + hop_us(t, same_node, c.protocol) + (same_node ? 0 : t.net_latency_us);
  c.seconds = c.nccl_seconds = start * 1e-6 + static_cast<double>(bytes) / (GBps * 1e9);
  const double rate = static_cast<double>(bytes) / (c.seconds * 1e9);
  if (!same_node) c.nic_share = std::min(1.0, rate / (t.nics * t.nic_GBps));
  if (same_node && t.nvlink_GBps > 0) c.nvlink_share = std::min(1.0, rate / t.nvlink_GBps);
  return c;
}

NcclChoice nccl_all_to_all(const NcclModel& m, Bytes bytes) {
  const NcclTopology& t = m.topology;
  const int local = t.ranks_per_node(), near = local - 1, far = t.ranks - local;
  const double each = static_cast<double>(bytes) / t.ranks;
  const bool one_node = far == 0 && t.nvlink_GBps > 0 && !is_rccl(t);
  const bool ll = one_node ? exchange_is_ll(t, ceil_div(bytes, t.ranks))
                           : each <= static_cast<double>(kLlBytesPerSendChannel * channels_to_peer(t, far == 0));
  const double near_bytes = each * near, node_bytes = each * far * local;
  const double near_s = near_bytes / (local_GBps(t, true) * 1e9);
  const double far_s = far > 0 ? node_bytes / (far_GBps(t) * 1e9) : 0;
  NcclChoice c;
  c.algorithm = NcclAlgorithm::point_to_point;
  c.protocol = ll ? P::ll : P::simple;
  const double slowest = hop_us(t, far == 0, c.protocol) + (far > 0 ? t.net_latency_us : 0);
  const double peers = near * hop_us(t, true, P::ll) + far * hop_us(t, false, P::ll) - hop_us(t, far == 0, P::ll);
  c.channels = std::min(kMaxSendChannels, near * channels_to_peer(t, true) + far * kNetChannels);
  const double kernel = is_rccl(t) ? rccl_exchange_start_us() : nccl_ring_us(kNcclStart_us, c.protocol);
  c.seconds = one_node ? exchange_on_one_node(m, bytes) : (kernel + slowest + peers) * 1e-6 + std::max(near_s, far_s);
  c.nccl_seconds = c.seconds;
  if (far > 0) c.nic_share = std::min(1.0, node_bytes / (c.seconds * t.nics * t.nic_GBps * 1e9));
  if (near > 0 && t.nvlink_GBps > 0) c.nvlink_share = std::min(1.0, near_bytes / (c.seconds * t.nvlink_GBps * 1e9));
  return c;
}

NcclChoice two_stage_all_to_all(const NcclModel& m, Bytes bytes, const TokenCopies& copies) {
  const NcclTopology& t = m.topology;
  const int local = t.ranks_per_node();
  const bool far = t.ranks > local;
  const double near_bytes = static_cast<double>(bytes) * copies.to_ranks * (local - 1) / local;
  const double node_bytes = far ? static_cast<double>(bytes) * copies.to_nodes * local : 0;
  const double near_s = near_bytes / (local_GBps(t, true) * 1e9);
  const double far_s = far ? node_bytes / (fitted_collectives().nic_to_all_part * t.nics * t.nic_GBps * 1e9) : 0;
  const double hops = hop_us(t, true, P::simple) + (far ? hop_us(t, false, P::simple) + t.net_latency_us : 0);
  // The two-stage all-to-all is taken to use as many channels as NCCL's direct (one-stage) all-to-all of the same size.
  NcclChoice c = nccl_all_to_all(m, bytes);
  const double kernel = is_rccl(t) ? rccl_exchange_start_us() : nccl_ring_us(kNcclStart_us, P::simple);
  c.seconds = c.nccl_seconds = (kernel + hops) * 1e-6 + std::max(near_s, far_s);
  c.nic_share = far ? std::min(1.0, node_bytes / (c.seconds * t.nics * t.nic_GBps * 1e9)) : 0;
  c.nvlink_share = t.nvlink_GBps > 0 ? std::min(1.0, near_bytes / (c.seconds * t.nvlink_GBps * 1e9)) : 0;
  return c;
}

}  // namespace orrery
