#pragma once

#include "sim/advice/search_options.h"

namespace orrery {

// orrery search of a spec that generates text: the layouts and batches with the most tokens per second and GPU, the
// earliest first token or the fastest further tokens. All layouts are predicted, so the best is proven by having been
// compared with every other. The exit status is 1 if no layout fits or the user stopped the search.
Outcome generation_search(const SearchCommandOptions& options, const Common& common);

}  // namespace orrery
