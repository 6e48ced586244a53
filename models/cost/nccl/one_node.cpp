#include "models/cost/nccl/one_node.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "models/cost/nccl/constants.h"
#include "models/cost/nccl/fitted.h"

namespace orrery {

namespace {

using P = NcclProtocol;

// Returns how many times longer than a hop of LL one of a protocol takes.
double longer_hop(const NcclTopology& t, P p) {
  const NcclLatencies& hops = t.nvlink_GBps > 0 ? kNcclNvlink_us : kNcclPcie_us;
  return nccl_ring_us(hops, p) / nccl_ring_us(hops, P::ll);
}

// V100s, of which no sweep is known, are taken to have A100s' numbers.
const NcclOnOneNode& numbers(const NcclTopology& t) {
  const auto& all = fitted_collectives().one_node;
  if (t.nvlink_GBps <= 0) return all[static_cast<std::size_t>(NodeKind::pcie)];
  const NodeKind kind = t.compute_capability < 90    ? NodeKind::sm80
                        : t.compute_capability < 100 ? NodeKind::sm90
                                                     : NodeKind::sm100;
  return all[static_cast<std::size_t>(kind)];
}

// Returns how often the threads of a block of LL are doubled from the smallest of 128: a block has 512 threads, and
// half as many while its data is less than eight bytes a thread and rank (enqueue.cc).
int doubled_threads(double bytes, int ranks) {
  int doubled = 2;
  for (int threads = 512; doubled > 0 && bytes < 8.0 * threads * ranks; threads /= 2) --doubled;
  return doubled;
}

// Returns the number of hops that the first bytes pass: in broadcast and reduce over channels that visit the ranks in
// one order, NCCL counts a single one.
int hops(const NcclModel& m, CollectiveKind kind) {
  const bool rooted = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  return rooted && m.graphs.ring.same_channels ? 1 : nccl_ring_steps(kind, m.topology.ranks);
}

// The limit of LL (kLlBytesPerSendChannel) is up to NCCL 2.28 for the greatest number of channels to a peer, since 2.29
// for those of the message, which has one for each 64 KiB (enqueue.cc, addP2pToPlan).
constexpr Bytes kPartSince29 = 64 << 10, kLlPart = 8 << 10;
constexpr std::int64_t kLlByMessageSince = 29;

// Returns the seconds of LL beyond its start: the peers have the channels in equal numbers, and a channel carries its
// part at a fraction of what a channel of a ring carries.
double ll_send_us(const NcclModel& m, Bytes each) {
  const Bytes part = m.topology.nccl_minor >= kLlByMessageSince ? kPartSince29 : kLlPart;
  const Bytes channels = std::min<Bytes>(std::max(1, kMaxSendChannels / m.topology.ranks), ceil_div(each, part));
  const double ring_GBps = m.row(CollectiveKind::all_reduce, NcclAlgorithm::ring, P::ll).bandwidth_GBps *
                           nccl_ring_steps(CollectiveKind::all_reduce, m.topology.ranks) / m.topology.ranks;
  const double GBps = fitted_collectives().ll_send_part * ring_GBps / m.graphs.collective_channels;
  return static_cast<double>(each) / static_cast<double>(std::max<Bytes>(1, channels)) / (1000 * GBps);
}

}  // namespace

double start_on_one_node_us(const NcclTopology& t) { return numbers(t).start_us; }

Seconds ring_on_one_node(const NcclModel& m, CollectiveKind kind, NcclProtocol protocol, Bytes bytes) {
  const NcclTopology& t = m.topology;
  const NcclOnOneNode& n = numbers(t);
  const FittedCollectives& f = fitted_collectives();
  const double size = static_cast<double>(bytes), steps = nccl_ring_steps(kind, t.ranks);
  double hop = n.hop_us * longer_hop(t, protocol);
  if (protocol == P::ll) hop *= 1 + f.wide_block * doubled_threads(size, t.ranks);
  const double start = n.start_us + (protocol == P::ll ? 0 : f.flags_us);
  const double part = (protocol == P::ll ? n.ll_part : n.ring_part) * steps / (steps + f.ring_end);
  const double GBps = m.row(kind, NcclAlgorithm::ring, protocol).bandwidth_GBps * part;
  return 1e-6 * (start + hops(m, kind) * hop + size / (1000 * GBps));
}

bool exchange_is_ll(const NcclTopology& t, Bytes each) {
  return each <= kLlBytesPerSendChannel * (t.nccl_minor >= kLlByMessageSince ? 1 : kMaxSendChannels);
}

Seconds exchange_on_one_node(const NcclModel& m, Bytes bytes) {
  const NcclTopology& t = m.topology;
  const NcclOnOneNode& n = numbers(t);
  const FittedCollectives& f = fitted_collectives();
  const Bytes each = ceil_div(bytes, t.ranks);
  const bool ll = exchange_is_ll(t, each);
  const double hop = n.hop_us * (longer_hop(t, ll ? P::ll : P::simple) + f.next_peer * std::max(0, t.ranks - 2));
  if (ll) return 1e-6 * (n.start_us + hop + ll_send_us(m, each));
  // The first chunks of all channels fill them; of a smaller buffer, its part of them does.
  const double size = static_cast<double>(bytes), full = static_cast<double>(kMaxSendChannels * kNvlinkSendChunk);
  const double filled = size + full * size / (size + full);
  const double link_GBps = f.nvlink_to_all_part * t.nvlink_GBps * t.ranks / (t.ranks - 1);
  return 1e-6 * (n.start_us + hop + filled / (1000 * std::min(n.exchange_GBps, link_GBps)));
}

}  // namespace orrery
