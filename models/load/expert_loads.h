#pragma once

#include <string>
#include <string_view>

#include "models/spec/model.h"

namespace orrery {

// Parses a file of expert loads: rows of token counts (JSON: a list of lists of numbers from 0 on). Throws Error with
// file, row and column for anything else.
ExpertLoads parse_loads(std::string_view text, const std::string& path);

// The file of model.moe.loads_file: one row of a count per expert for each expert layer, or one for all. Throws Error
// where a row is missing, has another number of counts, or counts nothing.
ExpertLoads read_expert_loads(const Model& model);

}  // namespace orrery
