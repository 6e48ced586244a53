#pragma once

#include "sim/advice/search_options.h"

namespace orrery {

// orrery search --maximize: the largest micro-batch, sequence (as a multiple of the spec's) or number of layers for
// which some strategy fits, and the first such strategy by its bound on the step time. Every micro-batch that the
// global batch allows is tried, from the largest. A strategy needs more memory for more layers or a longer sequence, so
// these sizes are found by doubling and halving; the search for layers starts anew at every number of layers from which
// on the pipeline may have more stages. For the sequence, only strategies count that the spec's own sequence allows.
// Throws Error for other words.
Outcome largest_command(const SearchCommandOptions& options, const Common& common);

}  // namespace orrery
