#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orrery {

// Lets a row of published measurements name a software profile that is built in. One that names another, or none but a
// framework, gets the one that these words and the age of its GPU suggest; one whose words are unknown, or that has
// none, the one that its way of sharding and the age of its GPU suggest.
void name_stack(nlohmann::json& row);

}  // namespace orrery
