#pragma once

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/engine/timing.h"

namespace orrery {

// Sets timing.links: which classes of ranks share a NIC, with how many ranks each, and on which links transfers of more
// than one lane (stream) or of more than one rank can run at the same time. timing.rows must be set before. Ranks fill
// nodes in order; the i-th GPU of a node uses NIC i * nics / gpus_per_node. In a folded plan (one rank of each class),
// NICs that serve the same numbers of ranks of each class are one link.
void find_shared_links(const Plan& plan, const Cluster& cluster, Timing& timing);

}  // namespace orrery
