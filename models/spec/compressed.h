#pragma once

#include <cstdint>

#include "models/spec/model.h"

namespace orrery {

// Numbers of pairs of a query and a key in one head of one sample with `sequence` tokens, in a layer with compressed
// attention (CompressedAttention), counted exactly.

// Returns the number of pairs of a token and a compressed key of tokens up to it, of at most `most` keys a token if
// most is above 0. rate: number of tokens of a key; a key is seen from its last token on.
double compressed_pairs(std::int64_t sequence, std::int64_t rate, std::int64_t most);

// Returns the number of pairs that attention computes: those with keys of the window, and those with compressed keys.
double attended_pairs(const Model& m, Mixer mixer, std::int64_t sequence);

// Returns the number of pairs that the index of a layer scores; 0 for a layer without an index.
double indexed_pairs(const Model& m, Mixer mixer, std::int64_t sequence);

}  // namespace orrery
