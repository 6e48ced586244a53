#pragma once

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/engine/timing.h"

namespace orrery {

// Sets timing.links: which classes of ranks load the same NIC, with how many ranks each, and which links can be
// contested at all, by more than one lane (stream) or more than one rank. Needs timing.rows. Ranks fill nodes in order;
// the i-th GPU of a node uses NIC i * nics / gpus_per_node. In a folded plan (one rank of each class) NICs that serve
// the same mix of classes are one link.
void find_shared_links(const Plan& plan, const Cluster& cluster, Timing& timing);

}  // namespace orrery
