#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "models/cost/nccl/model.h"
#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// The duration of a phase (forward or backward of a virtual stage), for finding an order of actions: the time that its
// ops take on the device, or the time that the host takes to issue them, whichever is longer.
struct OrderLength {
  double device = 0, host = 0;  // time of the ops on the device, and of their launches on the host, in nanoseconds

  void add(const OrderLength& other) {
    device += other.device;
    host += other.host;
  }
  std::int64_t whole() const { return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::max(device, host))); }
};

// Estimates the time of an op, in nanoseconds, for pipeline schedules whose orders depend on the times of stages. A
// kernel's time comes from the built-in profile of the spec's GPU, a collective's from the model of NCCL, for the group
// of the first rank at its position in the cluster. The times depend only on the spec: they are the simulator's times
// of a stage that runs alone, without a measured profile and without contention. For a GPU without a built-in profile
// its peak rates are used, and for a machine without known peaks the number of operations. Memcpys to and from the host
// are not counted, because they run at the same time as compute.
class OrderClock {
 public:
  // groups: the process groups of the plan (Plan::dimensions). The spec and `groups` must outlive this object.
  OrderClock(const Spec& spec, const std::vector<GroupTable>& groups);

  // Returns the time of an op on the device in nanoseconds. width: number of bytes of an activation element.
  double time(const Op& op, Bytes width);
  // Returns the times of an op on the device and on the host.
  OrderLength length(const Op& op, Bytes width);
  // Returns the time that the host takes for a block in addition to issuing its ops, for forward and for backward.
  std::array<OrderLength, 2> overhead(const Plan& plan, const Block& block) const;

 private:
  double at_peaks(const Op& op, Bytes width) const;
  std::vector<int> members(Dimension d) const;
  const NcclModel& model(const std::vector<int>& members);

  const Spec& spec_;
  const std::vector<GroupTable>& groups_;
  std::optional<Profile> profile_;
  std::map<std::vector<int>, NcclModel> models_;
};

}  // namespace orrery
