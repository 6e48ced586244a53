#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "sim/report/report.h"

namespace orrery {

// How the compute lane (stream) of every class of ranks (ranks that do the same) spends the reported step (period_of)
// or another part of a trace: the time of each TimeKind, in whole picoseconds.
struct Attribution {
  // for each class of ranks, the picoseconds of each TimeKind; over all kinds they sum to the part's time
  std::vector<std::array<Picoseconds, kTimeKinds>> by_slot;
  // For each class of ranks, the part of by_slot in which the compute lane ran or awaited an op of the frozen model
  // beside the one that trains (Block::second).
  std::vector<std::array<Picoseconds, kTimeKinds>> second_by_slot;
  // For each op of the plan, the time in which compute waited for the op's transfers, summed over ranks.
  std::vector<Picoseconds> exposed_by_op;
};

// Splits the time of each rank's compute lane (stream) by kind. Busy time is recompute, optimizer or compute, depending
// on the op. An idle gap is explained backwards from the task that ended it, along what that task waited for. Time
// while the host was issuing is launch. Time while a transfer was under way, from when its last rank had come until it
// ended, is exposed time of the transfer's group. Once the wait is for compute of another rank, the rest of the gap is
// bubble (a rank of another stage) or imbalance (same stage).
Attribution attribute(const Plan& plan, const Trace& trace);
// The same of the time `period` of the trace.
Attribution attribute(const Plan& plan, const Trace& trace, Period period);

// The kind of time as which waiting for a task of this lane counts, such as exposed tensor communication; `other` for
// the compute lane.
TimeKind exposed_kind(LaneKind lane);

}  // namespace orrery
