#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/report/report.h"

namespace orrery {

// The time that the compute lane (stream) of every class of ranks spends on each TimeKind in the step that is reported
// (period_of), in whole picoseconds.
struct Attribution {
  // for each class of ranks, the time of each TimeKind; the times sum to the step time
  std::vector<std::array<Picoseconds, kTimeKinds>> by_slot;
  // For each op, the time in which compute waited for the op's transfers, summed over ranks.
  std::vector<Picoseconds> exposed_by_op;
};

// Busy time counts as recompute, optimizer or compute, by its op. A gap is charged by walking back from the task that
// ended the gap along what that task waited for, moment by moment: while the host was issuing, to launch; while a
// transfer was on its way (matched to ended), to the transfer's group; once the wait is for compute of another rank,
// the rest of the gap is charged to bubble (a rank of another stage) or imbalance (a rank of the same stage).
Attribution attribute(const Plan& plan, const Trace& trace);

}  // namespace orrery
