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

// Orders weigh a phase by what its device computes, or by what its host takes to issue that, whichever is more.
struct OrderLength {
  double device = 0, host = 0;  // nanoseconds

  void add(const OrderLength& other) {
    device += other.device;
    host += other.host;
  }
  std::int64_t whole() const { return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::max(device, host))); }
};

// The time of an op, in nanoseconds, for orders of pipeline schedules that fit the times of stages: a kernel by the
// built-in profile of the spec's GPU, a collective by NCCL's model of the first rank's group, where the rank order puts
// it. So orders are found with the times that the simulator takes for a stage by itself, and are still a function of
// the spec alone: they know nothing of a measured profile and of contention. A GPU without built-in times counts at its
// peak rates, and on a machine without known peaks operations are counted. Copies to and from the host are left out,
// which run beside compute.
class OrderClock {
 public:
  // groups: Plan::dimensions. Both must outlive the clock.
  OrderClock(const Spec& spec, const std::vector<GroupTable>& groups);

  // width: bytes of an element.
  double time(const Op& op, Bytes width);
  // The op's times on the device and on the host.
  OrderLength length(const Op& op, Bytes width);
  // The time that the host takes for a block beyond its ops, in forward and in backward.
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
