#pragma once

#include <string>
#include <string_view>

#include "models/spec/model.h"

namespace orrery {

// Parses a file of expert loads: rows of token counts (in JSON: a list of lists of numbers that are not negative).
// Throws Error with file, row and column for anything else.
ExpertLoads parse_loads(std::string_view text, const std::string& path);

// Reads the file model.moe.loads_file: for each layer with experts one row with a token count for every expert, or a
// single row for all layers. Throws Error if a row is missing, has another number of counts, or has only zeros.
ExpertLoads read_expert_loads(const Model& model);

}  // namespace orrery
