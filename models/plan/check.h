#pragma once

#include "models/plan/plan.h"

namespace orrery {

// Throws Error when a plan cannot run: a dependency cycle, also when all transfers of a rank share one queue in issue
// order and each send/receive pair, batch and collective is one node (rendezvous, no buffering); a send without its
// receive; ends of a transfer of different sizes; members of a collective that issue it in different orders.
void check_plan(const Plan& plan);

}  // namespace orrery
