#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Lays out all chunks of a stage. A chunk whose embedding table other chunks use comes before those.
void lay_out(Draft& draft);

}  // namespace orrery
