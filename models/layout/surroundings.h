#pragma once

#include <cstdint>
#include <vector>

#include "models/layout/draft.h"

namespace orrery {

// Returns a number for every worker that stands for where its transfers go; 0 for all workers that lie as the first one
// of their stage does. Workers of a stage with equal numbers have groups with as many members on every node, which
// leave the same domains of the network (domain_sizes), have all stages of their pipelines on nodes and in domains that
// are divided alike, and share NICs (and, where something is offloaded, links to the host) with workers that lie alike.
// The list is empty if all workers of each stage do.
std::vector<std::uint32_t> surroundings(const Draft& draft);

}  // namespace orrery
