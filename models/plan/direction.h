#pragma once

#include <cstdint>

namespace orrery {

// Whether an op is part of the forward or of the backward pass.
enum class Direction : std::uint8_t { forward, backward };

}  // namespace orrery
