#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Whether an update comes after this action, and not at the end of the plan.
bool ends_update(const Draft& draft, const Action& action);

}  // namespace orrery
