#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Lays out the blocks, weights and buffers of all chunks of a stage. The chunk whose embedding table other chunks use
// is laid out first.
void lay_out(Draft& draft);

}  // namespace orrery
