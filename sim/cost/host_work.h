#pragma once

#include <array>

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/engine/timing.h"

namespace orrery {

// The cost of an op that works outside the device: its time when nothing else runs, and the share of every port's
// bandwidth (timing.h) that the op then uses. Ops outside the device are copies between memory tiers (device, host,
// disks), and computation on the host's processors.
struct HostWork {
  Seconds seconds = 0;
  std::array<double, kPorts> share{};
  double device_bytes_per_s = 0;  // bytes per second of the device memory's bandwidth that the copy takes
};

// Bandwidths in bytes per second when nothing else runs; 0 if not known. link: between a device and its host, in either
// direction; memory: the host's memory (infinite if the cluster does not describe it, so that it slows no copy);
// update: memory traffic of an optimizer on the host's processors; stores: memory tiers behind the host (disks).
struct StoreRates {
  double read = 0, write = 0;
};
struct HostRates {
  double link = 0, memory = 0, update = 0;
  std::array<StoreRates, kTiers> stores{};  // read and write rates of each memory tier
};
HostRates host_rates(const Cluster& cluster);

// Returns whether an op works outside the device, that is, copies between memory tiers (device, host, disks) or
// computes on the host's processors.
bool is_host_work(const Op& op);

// Returns the time of an op that works outside the device (a copy between memory tiers, or compute on the host), and
// the bandwidth that the op uses. start: seconds to start a copy. Throws Error if the op needs a host or disks that the
// cluster does not describe.
HostWork host_work(const Op& op, const Plan& plan, const Cluster& cluster, Seconds start);

}  // namespace orrery
