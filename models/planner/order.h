#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Chooses the schedule: finds the order of every pipeline stage's actions, and the positions in this order at which
// transfers are issued. Throws Error for a spec that the schedule cannot run.
void choose_schedule(Draft& draft);

}  // namespace orrery
