#pragma once

#include <string>
#include <vector>

#include "models/load/open_spec.h"
#include "sim/advice/search_options.h"

namespace orrery {

// The spec on one of the machines to search. open.overrides make load_spec() read the same machine again.
struct SearchTarget {
  OpenSpec open;
  std::vector<std::string> overrides;  // values of --set that select the machine, without those that the user gave
  std::int64_t gpus = 0;
};

// The machines to search: every --cluster (type of node) with every number of --gpus, with as many nodes as that number
// needs; options that are absent are taken from the spec. Another type of node keeps the spec's figures of the site:
// stragglers, oversubscription, failures. more: further overrides. Throws Error where --max-gpus leaves no machine.
std::vector<SearchTarget> targets_of(const SearchCommandOptions& options, const std::vector<std::string>& more = {});

}  // namespace orrery
