#pragma once

#include <string>

#include "sim/advice/search_options.h"
#include "sim/print/text.h"
#include "sim/search/space.h"

namespace orrery {

// Writes the spec of a strategy that a search has found, where --save asks for it; of several processes the first one
// writes. Throws Error if the file cannot be written.
void save_found(const SearchCommandOptions& options, const Space& space, const Point& point);

// The line that says how to predict the strategy again: the file of --save; else `command`, or on a terminal, where
// that is too long to be read, that --save writes it.
std::string how_to_repeat(const SearchCommandOptions& options, const std::string& command, const Style& style);

}  // namespace orrery
