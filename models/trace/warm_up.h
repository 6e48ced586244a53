#pragma once

#include <algorithm>
#include <cstddef>

namespace orrery {

// Returns the number of steps at the beginning of a run of `steps` steps that warm up, whose times are not used: two,
// and of a long run a third, in which a GPU under its power limit finds the clocks that it keeps. A run of four steps
// or fewer has none to spare.
inline std::size_t warm_up(std::size_t steps) {
  constexpr std::size_t kFewest = 2, kShare = 3;
  return steps > 2 * kFewest ? std::max(kFewest, steps / kShare) : 0;
}

}  // namespace orrery
