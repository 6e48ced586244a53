#pragma once

#include <string>
#include <vector>

#include "models/load/open_spec.h"
#include "sim/advice/search_options.h"

namespace orrery {

// A machine on which to search strategies, and the spec for it. open.overrides holds the settings with which
// load_spec() makes the spec for this machine from the spec file again.
struct SearchTarget {
  OpenSpec open;
  std::vector<std::string> overrides;  // values of --set that select the machine, besides those that the user gave
  std::int64_t gpus = 0;
};

// The machines to search: every --cluster (type of node) with every number of --gpus, and as many nodes as these GPUs
// need. If an option is absent, the spec's value is used. With another type of node, the spec's stragglers,
// oversubscription and failures still apply. more: further overrides. Throws Error where --max-gpus leaves no machine.
std::vector<SearchTarget> targets_of(const SearchCommandOptions& options, const std::vector<std::string>& more = {});

}  // namespace orrery
