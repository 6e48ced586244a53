#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The tasks that are ends of a transfer between two slots, collected while the slots are written one after the other.
struct TransferEnds {
  // Keys: boundary, micro-batch, whether forward, rank class, first byte of the transfer within the micro-batch's data.
  std::map<std::tuple<std::int32_t, std::int32_t, bool, int, Bytes>, std::vector<TaskId>> transfers;
  // Evicted activations, by number of the eviction, whether sent or returned, index of the evicted buffer, rank kind.
  std::map<std::tuple<std::int32_t, bool, std::size_t, int>, std::vector<TaskId>> evicted;
};

// Links the ends of each transfer, and the members of each collective that lie on several slots, to one match.
void link_matches(Plan& plan, const TransferEnds& ends);

}  // namespace orrery
