#pragma once

#include "models/layout/draft.h"

namespace orrery {

// The blocks of a virtual stage, in forward order. place: its number, counted on over the copies of the model.
std::vector<Entry> entries_of(Draft& draft, std::int64_t place);
// Entries of a stage's part of a shared vocabulary. The blocks differ on the root stage, which has what the other
// stages get.
std::vector<Entry> vocabulary_entries(Draft& draft, bool input);

}  // namespace orrery
