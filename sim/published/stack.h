#pragma once

#include <nlohmann/json_fwd.hpp>

namespace orrery {

// Sets the software profile in the spec of a row of published measurements. A built-in profile that the row names
// stays. Otherwise the profile is guessed: the software stack from words of the row (its software and framework) or, if
// these name no known stack, from its sharding; the stack's version from the age of the GPU. Steps whose framework
// names ROCm get the stack's profile for AMD's GPUs, whatever they name.
void name_stack(nlohmann::json& row);

}  // namespace orrery
