#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orrery {

// Lets a row of published measurements name a software profile that is built in. One that names none, or another, gets
// the one that its framework's words and the age of its GPU suggest: what was usual then, unfused where that was.
void name_stack(nlohmann::json& row);

}  // namespace orrery
