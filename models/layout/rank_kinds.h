#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Adds the servers as ranks after the workers. They stand on the workers' machines in turn, or on one machine each
// behind those. The range of a server is kept once more by the server on the next server's machine, and so on (Li et
// al., section 4.3).
void add_servers(Draft& draft);
// Ranks of a stage do different work where the first member of every expert group has the busy experts, or where the
// blocks of a context ring differ. Classes of one rank each meet in every group: nothing is folded. Replicas of a stage
// are not folded either; they are slots of their own.
void tell_kinds_apart(Draft& draft);

}  // namespace orrery
