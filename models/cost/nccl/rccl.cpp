#include "models/cost/nccl/rccl.h"

#include <algorithm>

#include "models/cost/nccl/fitted.h"

namespace orrery {

namespace {

// RCCL has 14 rings in a node of eight MI300X: seven orders of the GPUs, in both directions (src/graph/rome_models.cc);
// each becomes two channels (DupChannels in src/graph/connect.cc). Smaller groups are taken to have as many channels
// for each link of a GPU.
constexpr int kChannelsPerLink = 4;

// Microseconds, from RCCL's tuning table for MI300X (src/graph/tuning.cc, tuning_model_5, protocol Simple): the start
// of a ring, one step over a link. Between nodes: the host's work for a step, with AMD processors, and a hop over the
// network, for which NCCL's figure is taken, since RCCL's (320) only keeps its rings away from small messages.
// All-reduce of 64 KiB on eight GPUs: 17 + 14 * 2.1 = 46 us, measured 44.5 (rccl-tests, MI300-class GPUs).
constexpr double kRcclStart_us = 17, kLink_us = 2.1, kNetStep_us = 6, kNet_us = 14;

// GB/s that pass the slowest cut of all rings together: a rank's links inside a node; between nodes the NICs, or what
// the links can hand on to them.
double ring_GBps(const NcclTopology& t) {
  const int local = t.ranks_per_node();
  if (t.nodes == 1) return (local - 1) * t.link_GBps;
  const double nics = fitted_collectives().rccl_nic_part * t.nics * t.nic_GBps;
  return local == 1 ? nics : std::min(nics, local * t.link_GBps);
}

double ring_us(const NcclTopology& t, CollectiveKind kind) {
  const int all = nccl_ring_steps(kind, t.ranks);
  const int passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const int between = t.nodes == 1 ? 0 : passes * (t.nodes - 1);
  const double inside = t.nodes == 1 ? kLink_us : std::max(kLink_us, kNetStep_us);
  return kRcclStart_us + std::max(0, all - between) * inside + between * (kNet_us + 2 * t.net_latency_us);
}

}  // namespace

double rccl_send_start_us() { return kRcclStart_us + kLink_us; }

// All-to-all among eight GPUs takes 46 us up to 4 MiB, and 40 us beyond the time of the bytes from 64 MiB on
// (rccl-tests, MI300-class GPUs).
double rccl_exchange_start_us() { return 40; }

NcclGraphs rccl_graphs(const NcclTopology& t) {
  NcclGraphs g;
  const int local = t.ranks_per_node();
  const int links = std::max(1, t.nodes > 1 ? local : local - 1);
  NcclGraph& ring = g.ring;
  ring.channels = kChannelsPerLink * links;
  ring.intra_GBps = ring.inter_GBps = ring_GBps(t) / ring.channels;
  if (local > 1) ring.intra = NcclPath::nvl;
  g.tree = ring;
  g.collective_channels = ring.channels;
  return g;
}

NcclTable rccl_table(const NcclTopology& t) {
  NcclTable table{};
  if (t.ranks <= 1) return table;
  for (std::size_t k = 0; k < table.size(); ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::shift) continue;
    NcclRow& row =
        table[k][static_cast<std::size_t>(NcclAlgorithm::ring)][static_cast<std::size_t>(NcclProtocol::simple)];
    row = {ring_us(t, kind), ring_GBps(t) * t.ranks / nccl_ring_steps(kind, t.ranks)};
  }
  return table;
}

}  // namespace orrery
