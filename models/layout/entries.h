#pragma once

#include "models/layout/draft.h"

namespace orrery {

// The blocks of a virtual stage, in forward order. place: number of the virtual stage, counted on through all copies of
// the model.
std::vector<Entry> entries_of(Draft& draft, std::int64_t place);
// The blocks of a stage's part of a shared vocabulary. They differ on the root stage, which has the tensors that the
// other stages receive.
std::vector<Entry> vocabulary_entries(Draft& draft, bool input);

}  // namespace orrery
