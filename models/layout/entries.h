#pragma once

#include "models/layout/draft.h"

namespace orrery {

// Returns the blocks of a virtual stage, in forward order. place: number of the virtual stage, counted through all
// copies of the model.
std::vector<Entry> entries_of(Draft& draft, std::int64_t place);
// Returns the blocks by which a pipeline stage handles its part of a vocabulary that all stages share: if `input`, the
// lookups of token embeddings and their sum over the stages, else the broadcast of the hidden states and the logits. On
// the root, which has the hidden states that other stages send or receive, these blocks differ.
std::vector<Entry> vocabulary_entries(Draft& draft, bool input);

}  // namespace orrery
