#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Returns the blocks of a virtual stage, in forward order. place: number of the virtual stage, counted through all
// copies of the model.
std::vector<Entry> entries_of(Draft& draft, std::int64_t place);
// Returns the blocks of a stage's part of a shared vocabulary. The root stage's blocks differ, because it has the
// tensors that the other stages receive. input: the blocks of the token lookups; else those of the logits.
std::vector<Entry> vocabulary_entries(Draft& draft, bool input);

}  // namespace orrery
