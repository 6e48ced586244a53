#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orrery {

// Gives a row of published measurements a built-in software profile. A row that names another software, or only a
// framework, gets the profile that its words and the age of its GPU suggest; a row with unknown words, or without
// words, gets the profile that its sharding and the age of its GPU suggest.
void name_stack(nlohmann::json& row);

}  // namespace orrery
