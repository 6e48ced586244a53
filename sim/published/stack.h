#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orrery {

// Gives a row of published measurements one of the built-in software profiles. A row that names another software, or
// only a framework, gets the profile that its words and the age of its GPU suggest; a row whose words are unknown or
// absent gets the profile that its sharding and the age of its GPU suggest.
void name_stack(nlohmann::json& row);

}  // namespace orrery
