#pragma once

#include <array>
#include <cstdint>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "models/spec/cluster.h"

namespace orrery {

// The uplinks of pods. Pods are sets of cluster.oversubscribed_above_gpus GPUs, joined to each other by 1/ratio of
// their NICs' bandwidth ("1:7 above 3,072 GPUs": Llama 3, section 3.3.1). All groups of a dimension transfer at the
// same time, so that a transfer lasts at least as long as the uplink of the busiest pod needs for the bytes that all
// these groups send out of the pod. NCCL orders rings and trees node by node: a group that spans several pods sends out
// of each pod the bytes that one node sends to its neighbours (a double tree of binary trees crosses a pod's boundary
// four times with half the buffer, a ring once with twice the buffer). In an all-to-all, every member inside a pod
// sends to every member outside. Other traffic on the uplink at the same moment is ignored.
class Uplinks {
 public:
  // Between which ranks a group's transfer crosses the boundary of a pod. neighbours: between two nodes that follow
  // each other in a ring or tree; pairs: between every member inside the pod and every member outside.
  enum class Pattern : std::uint8_t { neighbours, pairs };

  // node_gpus: number of GPUs that reach each other without a NIC.
  Uplinks(const Plan& plan, const Cluster& cluster, std::int64_t node_gpus);

  // Returns whether the path between two ranks, or the ring of a rank's group, leaves a pod whose uplink is
  // oversubscribed.
  bool crosses(std::int64_t from, std::int64_t to) const { return pod_gpus_ > 0 && pod_of(from) != pod_of(to); }
  bool crosses(Dimension d, std::int64_t rank) const;
  // Returns the seconds that the busiest pod's uplink needs when all groups of a dimension of parallelism make the same
  // transfer at the same time, in which each node sends node_bytes through its NICs; 0 if no group spans more than one
  // pod.
  Seconds least_time(Dimension d, Pattern pattern, double node_bytes) const;

 private:
  std::int64_t pod_of(std::int64_t rank) const { return rank / pod_gpus_; }
  void count_edges(std::size_t dimension);
  void count_pairs(std::size_t dimension, std::int64_t node_gpus);

  const Plan& plan_;
  std::int64_t pod_gpus_ = 0;  // number of GPUs in a pod; 0: no link is oversubscribed
  double capacity_ = 0;        // capacity of a pod's uplink in each direction, bytes per second

  // For each dimension of parallelism: the bytes that all its groups together send out of the busiest pod, divided by
  // the bytes that one group sends out of a node.
  std::array<double, kDimensions> edges_{}, pairs_{};
};

}  // namespace orrery
