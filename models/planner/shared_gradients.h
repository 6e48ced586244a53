#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Whether this stage is an end of the pipeline whose word table the other end holds too, so that the table's gradient
// is summed over both stages after each has reduced its own.
bool shares_table(const Draft& draft);

}  // namespace orrery
