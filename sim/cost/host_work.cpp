#include "sim/cost/host_work.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

// The share of a PCIe link's nominal rate that a copy from pinned memory reaches: 25.1 of 31 GB/s on a gen 4 x16 link
// (nvbandwidth on A100, NVIDIA/nvbandwidth issue 42). On a gen 3 x16 link, 12 of 15.75 GB/s (NCCL's PCI_BW for gen 3)
// is about the same share.
constexpr double kPinnedFraction = 0.8;
// The share of the host's memory bandwidth that a vectorised Adam on all cores reaches: ZeRO-Offload (2101.06840),
// table 4, updates 1, 2, 4, 8 and 10 B parameters on two Xeon 8168 (256 GB/s) in 0.22 to 2.57 s, which is 117 to 136
// GB/s at 30 bytes per parameter.
constexpr double kAdamFraction = 0.5;

double& at(HostWork& w, Port p) { return w.share[static_cast<std::size_t>(p)]; }

}  // namespace

HostRates host_rates(const Cluster& c) {
  constexpr double kGiga = 1e9;
  HostRates r{.link = c.gpu.pcie_GBps * kGiga * kPinnedFraction, .memory = std::numeric_limits<double>::infinity()};
  const bool known = c.host && c.host->dram_GBps > 0;
  if (known) r.memory = c.host->dram_GBps * kGiga;
  if (known) r.update = r.memory * kAdamFraction;
  for (std::size_t t = 0; t < kTiers; ++t) {
    if (c.stores[t]) r.stores[t] = {c.stores[t]->read_GBps * kGiga, c.stores[t]->write_GBps * kGiga};
  }
  return r;
}

bool is_host_work(const Op& op) {
  const auto* c = std::get_if<PlaceCopy>(&op.work);
  return op.lane == LaneKind::cpu || (c != nullptr && c->from != c->to);
}

HostWork host_work(const Op& op, const Plan& plan, const Cluster& cluster, Seconds start) {
  const HostRates rates = host_rates(cluster);
  HostWork w;
  const auto* c = std::get_if<PlaceCopy>(&op.work);
  if (c == nullptr) {
    const double bytes = cost_of(op.work, plan.element_bytes).bytes;
    if (bytes == 0) return w;
    if (rates.update <= 0)
      throw Error("cluster.host: missing; an update on the host needs dram_GiB and dram_GBps of a node");
    w.seconds = bytes / rates.update;
    at(w, Port::processors) = 1;
    at(w, Port::host_memory) = kAdamFraction;
    return w;
  }
  const bool fetch = behind_host(c->from), store = behind_host(c->to);
  const MemoryTier tier = fetch ? c->from : c->to;
  const StoreRates& there = rates.stores[index_of(tier)];
  if ((fetch || store) && (there.read <= 0 || there.write <= 0))
    throw Error(fmt::format("cluster.{}: missing; offload to {} needs TB, read_GBps and write_GBps of a node",
                            row_of(tier).name, row_of(tier).about));
  const double way = fetch ? there.read : store ? there.write : rates.link, rate = std::min(way, rates.memory);
  const Port port = fetch                           ? read_port(tier)
                    : store                         ? write_port(tier)
                    : c->from == MemoryTier::device ? Port::d2h
                                                    : Port::h2d;
  w.seconds = start + static_cast<double>(c->bytes) / rate;
  const double moving = static_cast<double>(c->bytes) / w.seconds;
  at(w, port) = moving / way;
  w.device_bytes_per_s = fetch || store ? 0 : moving;
  at(w, Port::host_memory) = std::min(1.0, moving / rates.memory);
  return w;
}

}  // namespace orrery
