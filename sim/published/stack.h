#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orrery {

// Sets the software profile in the spec of a row of published measurements to a built-in one. If the row names other
// software, or only a framework, its words and the age of its GPU decide; if the words are unknown or absent, the
// sharding and the age of the GPU.
void name_stack(nlohmann::json& row);

}  // namespace orrery
