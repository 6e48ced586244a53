#pragma once

#include "models/plan/plan.h"

namespace orrery {

// Throws Error if a plan cannot run, because of a send without its receive, a sender and a receiver with different
// numbers of bytes, members that issue their collectives in different orders, or a cycle of dependencies. Cycles are
// searched for as if all transfers of a rank shared one queue in issue order, and as if a send/receive pair, a batch of
// transfers (NCCL group) and a collective each began only when all their members had come (rendezvous, no buffering).
void check_plan(const Plan& plan);

}  // namespace orrery
