#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Adds the parameter servers as ranks after the workers. They run on the workers' machines in turn, or each on a
// machine of its own, after the workers' machines. The servers on the following machines keep the replicas of a
// server's range (Li et al., section 4.3).
void add_servers(Draft& draft);
// Splits the ranks of a stage into kinds if they do different work: because the first member of every expert group has
// the busy experts, because the blocks of a context ring differ, because ranks are slow, or because their roles differ.
// If each class has one rank, groups contain ranks of all classes and nothing is folded. Replicas of a stage are not
// folded either; each has a slot of its own.
void tell_kinds_apart(Draft& draft);

}  // namespace orrery
