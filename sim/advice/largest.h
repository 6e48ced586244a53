#pragma once

#include "sim/advice/search_options.h"

namespace orrery {

// orrery search --maximize: the largest micro-batch, sequence (in multiples of the spec's) or number of layers for
// which some strategy fits, and the first of these strategies by bound. For the micro-batch, every size that the batch
// allows is tried, from the largest. A strategy needs more memory for more layers or a longer sequence, so these are
// found by doubling and halving; the search for layers starts anew from every size from which on the pipeline may have
// more stages. For the sequence, only strategies count that the spec's own sequence allows. Throws Error for other
// words.
Outcome largest_command(const SearchCommandOptions& options, const Common& common);

}  // namespace orrery
