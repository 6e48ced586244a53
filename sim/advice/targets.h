#pragma once

#include <string>
#include <vector>

#include "models/load/open_spec.h"
#include "sim/advice/search_options.h"

namespace orrery {

// A spec on one of the machines that a search was asked for. open.overrides repeat it.
struct SearchTarget {
  OpenSpec open;
  std::vector<std::string> overrides;  // that made the machine, after the command's own
  std::int64_t gpus = 0;
};

// Every --cluster with every number of --gpus, with as many nodes as that needs; absent ones are the spec's. Another
// node keeps what the spec says of the site: stragglers, oversubscription, failures. more: overrides on top. Throws
// Error where --max-gpus leaves none.
std::vector<SearchTarget> targets_of(const SearchCommandOptions& options, const std::vector<std::string>& more = {});

}  // namespace orrery
