#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layout/draft.h"

namespace orrery {

// Divides the workers of every stage into classes, of each of which a plan has one rank. marks: for each worker what
// tells it from others, as a number; 0: nothing. Data-parallel replicas are in one class if their ranks at the same
// positions have the same marks; tensor ranks, and context ranks, are compared in the same way. A class is simulated by
// its first rank, so every process group of a class's first rank must contain the first ranks of the classes of all its
// members; where groups have a part of the replicas (experts, sets of shards), replicas are therefore compared in sets
// of as many, and where this is not enough tensor and context ranks, and at last replicas, are all classes of their
// own. kinds: for each worker the name of a kind that it has beside, such as ", busiest experts", which tells it from
// others too. Returns the name of each worker's class within its stage, its kind and what its marks add: ", replica 3
// and 2 alike", ", other replicas". Returns an empty list if there would be more than `most` classes.
std::vector<std::string> alike_ranks(const Draft& draft, const std::vector<std::string>& kinds,
                                     const std::vector<std::uint32_t>& marks, std::int64_t most);

}  // namespace orrery
