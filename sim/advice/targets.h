#pragma once

#include <string>
#include <vector>

#include "models/load/open_spec.h"
#include "sim/advice/search_options.h"

namespace orrery {

// A spec on one of the machines that a search was asked for. open.overrides make the same machine again.
struct SearchTarget {
  OpenSpec open;
  std::vector<std::string> overrides;  // overrides that made the machine, after those of the command
  std::int64_t gpus = 0;
};

// Targets for every --cluster with every number of --gpus, with as many nodes as that number needs; options that are
// absent are taken from the spec. Another node keeps the spec's figures of the site: stragglers, oversubscription,
// failures. more: further overrides. Throws Error where --max-gpus leaves none.
std::vector<SearchTarget> targets_of(const SearchCommandOptions& options, const std::vector<std::string>& more = {});

}  // namespace orrery
