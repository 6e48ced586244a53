#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Adds the parameter servers as ranks after the workers. They are placed on the workers' machines in turn, or on a
// machine of their own each, after the workers' machines. The server on the next machine keeps a replica of a server's
// range, and so on (Li et al., section 4.3).
void add_servers(Draft& draft);
// Splits the ranks of a stage into kinds where they do different work: if the first member of every expert group has
// the busy experts, or if the blocks of a context ring differ. If each class has one rank, groups join ranks of all
// classes and nothing is folded. Replicas of a stage are not folded either; they are slots of their own.
void tell_kinds_apart(Draft& draft);

}  // namespace orrery
