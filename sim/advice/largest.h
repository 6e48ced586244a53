#pragma once

#include "sim/advice/search_options.h"

namespace orrery {

// orrery search --maximize: finds the largest micro-batch, sequence (as a multiple of the spec's) or number of layers
// for which some strategy fits in memory, and for this size the strategy with the lowest bound on the step time. Every
// micro-batch that the global batch allows is tried, from the largest. Longer sequences and more layers need more
// memory, so the largest is found by doubling and halving; for layers the doubling starts anew at every number of
// layers from which the pipeline may have more stages. For sequences, only those strategies count that are valid for
// the spec's own sequence too. Throws Error for any other word after --maximize.
Outcome largest_command(const SearchCommandOptions& options, const Common& common);

}  // namespace orrery
