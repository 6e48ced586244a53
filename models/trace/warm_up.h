#pragma once

#include <algorithm>
#include <cstddef>

namespace orrery {

// Returns the number of steps at the beginning of a run of `steps` steps whose times are not used, because they are
// warm-up: a third of the steps, but at least two; a GPU at its power limit needs that long to settle on its clocks.
// The result is 0 for four steps or fewer.
inline std::size_t warm_up(std::size_t steps) {
  constexpr std::size_t kFewest = 2, kShare = 3;
  return steps > 2 * kFewest ? std::max(kFewest, steps / kShare) : 0;
}

}  // namespace orrery
