#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The tasks that are ends of one transfer between slots, which are found while these are written one after the other.
struct TransferEnds {
  // By boundary, micro-batch, whether forward, rank class, byte of the micro-batch at which the transfer begins.
  std::map<std::tuple<std::int32_t, std::int32_t, bool, int, Bytes>, std::vector<TaskId>> transfers;
  // Moved activations, by move, whether away, index of the evicted buffer, rank kind.
  std::map<std::tuple<std::int32_t, bool, std::size_t, int>, std::vector<TaskId>> evicted;
};

// Links the ends of each transfer, and the members of each collective that lie on several slots, to one match.
void link_matches(Plan& plan, const TransferEnds& ends);

}  // namespace orrery
