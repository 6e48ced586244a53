#pragma once

#include <cstdint>

#include "models/spec/model.h"

namespace orrery {

// The functions below count query-key pairs exactly, in one head of one sample of `sequence` tokens, in a layer with
// compressed attention (CompressedAttention).

// Returns the number of pairs of a token and a compressed key that it attends to. A compressed key stands for `rate`
// consecutive tokens; the last of these tokens and all later tokens may attend to it. If most is above 0, a token
// attends to at most `most` compressed keys.
double compressed_pairs(std::int64_t sequence, std::int64_t rate, std::int64_t most);

// Returns the number of query-key pairs that attention computes: pairs with keys of the sliding window, plus pairs with
// compressed keys.
double attended_pairs(const Model& m, Mixer mixer, std::int64_t sequence);

// Returns the number of pairs of a token and a compressed key that a sparse attention layer scores in order to choose
// keys; 0 for a layer that does not choose keys.
double indexed_pairs(const Model& m, Mixer mixer, std::int64_t sequence);

}  // namespace orrery
