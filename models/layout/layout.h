#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Lays out the blocks, weights and buffers of all chunks of a stage. A chunk whose embedding table others use comes
// before them.
void lay_out(Draft& draft);

}  // namespace orrery
