#pragma once

#include "sim/command_search.h"

namespace orrery {

// orrery search --maximize: the largest micro-batch, sequence (in multiples of the spec's) or number of layers for
// which some strategy fits, and the first of these by bound. More of any needs more memory, so it is found by doubling
// and halving. Throws Error for other words.
Outcome largest_command(const SearchCommandOptions& options, const Common& common);

}  // namespace orrery
