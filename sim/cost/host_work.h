#pragma once

#include <array>

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/engine/timing.h"

namespace orrery {

// What an op beyond the device takes alone, and which part of every port (timing.h) it loads then: copies between
// places, and what the host's processors compute.
struct HostWork {
  Seconds seconds = 0;
  std::array<double, kPorts> share{};
  double device_bytes_per_s = 0;  // through the device's memory
};

// Bytes a second when nothing else runs: of a device's link to its host either way, of the host's memory (infinite
// where the cluster does not describe it: it slows no copy then), of the host's optimizer, of the node's disks. 0: not
// known.
struct HostRates {
  double link = 0, memory = 0, update = 0, read = 0, write = 0;
};
HostRates host_rates(const Cluster& cluster);

// Whether an op is such work: a copy between places, or one of the host's lane.
bool is_host_work(const Op& op);

// start: of a copy. Throws Error where the cluster states no host, or no disks.
HostWork host_work(const Op& op, const Plan& plan, const Cluster& cluster, Seconds start);

}  // namespace orrery
