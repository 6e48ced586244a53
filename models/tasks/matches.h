#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The sends and receives of transfers between two slots (classes of ranks), collected while the tasks of the slots are
// written one after the other.
struct TransferEnds {
  // the tasks of each transfer between two virtual stages; key: boundary between the two stages, micro-batch, whether
  // forward, kind of ranks (those of one stage that do the same work), first byte of the transfer within the
  // micro-batch's data
  std::map<std::tuple<std::int32_t, std::int32_t, bool, int, Bytes>, std::vector<TaskId>> transfers;
  // the tasks of each transfer of evicted activations (BPipe); key: number of the eviction, whether sent or returned,
  // index of the evicted buffer, kind of ranks (those of one stage that do the same work)
  std::map<std::tuple<std::int32_t, bool, std::size_t, int>, std::vector<TaskId>> evicted;
};

// Records which tasks meet in one transfer (Plan::matches): the sender and the receiver of each transfer, and the
// members of each collective that has members in several classes of ranks.
void link_matches(Plan& plan, const TransferEnds& ends);

}  // namespace orrery
