#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Finds the order of every stage's actions, and the positions in it at which transfers are issued. Throws Error for a
// spec that the schedule cannot run.
void choose_schedule(Draft& draft);

}  // namespace orrery
