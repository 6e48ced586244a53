#pragma once

#include <cstdint>

namespace orrery {

// A product with fewer rows has a law of its own where a text is generated: these rows wait for the weights on every
// GPU; with more, clocks under a load of minutes decide, which measured bursts do not tell.
inline constexpr std::int64_t kFewRows = 64;

}  // namespace orrery
