#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Adds the parameter servers as ranks after the workers. Servers run either on the workers' machines in turn, or each
// on a machine of its own, after the workers' machines. Copies of the range of weights that a server owns are kept by
// the servers on the machines that follow it (Li et al. 2014, section 4.3).
void add_servers(Draft& draft);
// Splits the ranks of a pipeline stage into several classes if they do different work: because the first member of
// every expert group has the busiest experts, because the blocks of a context ring differ, because some ranks are slow,
// or because roles differ. A plan is usually folded: one rank represents its class, and each process group is taken to
// have ranks of one class. It is not folded if each class has one rank; then groups contain ranks of all classes. Nor
// are the replicas of a stage folded; each has classes of its own.
void tell_kinds_apart(Draft& draft);

}  // namespace orrery
