#pragma once

#include <string>

#include "sim/advice/search_options.h"
#include "sim/print/text.h"
#include "sim/search/space.h"

namespace orrery {

// Writes the spec of the best strategy that a search has found to the file of --save, if that option is given. If
// several processes search together, the first one writes. Throws Error if the file cannot be written.
void save_found(const SearchCommandOptions& options, const Space& space, const Point& point);

// A line that tells the user how to predict the strategy again: from the file of --save if there is one, else by
// `command`. On a terminal on which the command would be too long to read, the line instead says that --save writes the
// strategy to a file.
std::string how_to_repeat(const SearchCommandOptions& options, const std::string& command, const Style& style);

}  // namespace orrery
