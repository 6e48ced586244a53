#pragma once

#include <cstdint>

namespace orrery {

using LinkId = std::uint32_t;
using FlowId = std::uint32_t;
using Rate = std::int64_t;  // rate of a flow, in units of 1/2^24 of its full speed

inline constexpr Rate kFullRate = Rate{1} << 24;

}  // namespace orrery
