#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/report/report.h"

namespace orrery {

// The time that the compute lane of every slot spends on each TimeKind in the step that is reported (period_of), whole
// picoseconds.
struct Attribution {
  std::vector<std::array<Picoseconds, kTimeKinds>> by_slot;  // each sums to the step time
  std::vector<Picoseconds> exposed_by_op;  // time in which compute waited for this op's transfers, times multiplicity
};

// Busy time goes to recompute, optimizer or compute by its op. A gap is charged by walking back from the task that
// ended it along what that task waited for, moment by moment: while the host was issuing, to launch; while a transfer
// was on its way (matched to ended), to its group; once compute of another rank is met, the rest to bubble (another
// stage) or imbalance (the same stage).
Attribution attribute(const Plan& plan, const Trace& trace);

}  // namespace orrery
