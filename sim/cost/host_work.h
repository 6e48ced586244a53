#pragma once

#include <array>

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/engine/timing.h"

namespace orrery {

// The time of an op beyond the device when it runs alone, and the share of every port (timing.h) that it loads then.
// Such ops are copies between places, and computation on the host's processors.
struct HostWork {
  Seconds seconds = 0;
  std::array<double, kPorts> share{};
  double device_bytes_per_s = 0;  // bytes per second through the device's memory
};

// Bytes per second when nothing else runs: of the link between a device and its host in either direction, of the host's
// memory (infinite where the cluster does not describe it: it slows no copy then), of the host's optimizer, of the
// node's disks. 0: not known.
struct HostRates {
  double link = 0, memory = 0, update = 0, read = 0, write = 0;
};
HostRates host_rates(const Cluster& cluster);

// Whether an op is work beyond the device: a copy between places, or an op of the host's lane.
bool is_host_work(const Op& op);

// start: time to start a copy. Throws Error where the cluster states no host, or no disks.
HostWork host_work(const Op& op, const Plan& plan, const Cluster& cluster, Seconds start);

}  // namespace orrery
