#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Finds the order of every stage's actions, and the places of the transfers between them. Refuses what the schedule
// cannot do.
void choose_schedule(Draft& draft);

}  // namespace orrery
