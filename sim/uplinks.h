#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/cluster.h"
#include "models/plan.h"

namespace orrery {

// Groups of cluster.oversubscribed_above_gpus GPUs (pods) are joined to each other by 1/ratio of their NICs' bandwidth
// ("1:7 above 3,072 GPUs": Llama 3, section 3.3.1). NCCL orders a ring node by node, so a group that lies in several
// pods leaves each of them over one edge, and all groups of a dimension move at the same time: what they send out of
// the busiest pod, over what its uplink carries, is how much longer their transfers take. Other traffic that crosses at
// the same moment is left out.
class Uplinks {
 public:
  Uplinks(const Plan& plan, const Cluster& cluster);

  // Whether the way between two ranks, or that around a rank's group, leaves a pod whose uplink can be short.
  bool crosses(std::int64_t from, std::int64_t to) const { return pod_gpus_ > 0 && pod_of(from) != pod_of(to); }
  bool crosses(Dimension d, std::int64_t rank) const;
  // How much longer a transfer of such a group takes that sends GBps over an edge between two nodes. At least 1.
  double slowdown(Dimension d, double GBps) const;

 private:
  std::int64_t pod_of(std::int64_t rank) const { return rank / pod_gpus_; }

  const Plan& plan_;
  std::int64_t pod_gpus_ = 0;                      // 0: nothing is oversubscribed
  double capacity_GBps_ = 0;                       // of a pod's uplink, per direction
  std::array<std::int64_t, kDimensions> edges_{};  // of all groups of a dimension that leave the busiest pod
};

}  // namespace orrery
