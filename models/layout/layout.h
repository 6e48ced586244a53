#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Makes the blocks, weights and buffers of all chunks (virtual stages) of a pipeline stage. The chunk whose embedding
// table other chunks use is laid out first.
void lay_out(Draft& draft);

}  // namespace orrery
