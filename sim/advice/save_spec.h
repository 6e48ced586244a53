#pragma once

#include <string>
#include <vector>

#include "models/load/load_spec.h"

namespace orrery {

// Writes a spec with overrides applied, as YAML after lines of comment. Paths in the spec stay relative to the folder
// of the spec file that it was made from. Throws Error if the file cannot be written.
void save_spec(const std::string& path, const std::vector<std::string>& comment, const SpecText& spec,
               const std::vector<std::string>& overrides);

}  // namespace orrery
