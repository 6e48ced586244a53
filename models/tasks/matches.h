#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The sends and receives of transfers between two slots (classes of ranks), collected while the tasks of the slots are
// written one after the other.
struct TransferEnds {
  // A transfer is told apart from all others of its list by these properties.
  struct Transfer {
    // transfers: the boundary between two virtual stages that is crossed; evicted: number of the eviction (BPipe)
    std::int32_t number = 0;
    std::int32_t micro_batch = 0;  // evicted: 0
    bool forward = false;          // evicted: whether the activations are sent away, rather than returned
    int kind = 0;                  // kind of ranks (those of one stage that do the same work)
    // transfers: first byte within the micro-batch's data; evicted: index of the evicted buffer
    std::int64_t first = 0;

    auto operator<=>(const Transfer&) const = default;
  };
  // A task that sends or receives in a transfer. A list of ends has them in the order of their tasks.
  struct End {
    Transfer transfer;
    TaskId task = kNone;
  };

  std::vector<End> transfers;  // transfers between two virtual stages
  std::vector<End> evicted;    // transfers of evicted activations (BPipe)
};

// Records which tasks meet in one transfer (Plan::matches): the sender and the receiver of each transfer, and the
// members of each collective that has members in several classes of ranks.
void link_matches(Plan& plan, const TransferEnds& ends);

}  // namespace orrery
