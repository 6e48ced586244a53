#pragma once

#include <cstddef>
#include <vector>

#include "models/schedule/transfer_order.h"

namespace orrery {

// Post-update validation (Qi et al. 2024, arXiv 2401.10241, section 4): a stage updates by what the stages before it
// know of the gradients' norm, and begins the next step; there the norm of all comes back from the last stage. Where it
// clips, or is not finite, every stage takes its update back, makes it again, and runs again what it did since.

// A place among a stage's transfers: before number `crossing` of turn `turn`, or behind the last of them.
struct TurnPlace {
  std::size_t turn = 0, crossing = 0;

  friend bool operator==(const TurnPlace&, const TurnPlace&) = default;
};

// For every stage the last place before anything runs back, such that no transfer has one end before these places and
// the other behind: all stages can run again what they did so far. What stages do together (moved activations, a shared
// vocabulary) comes behind.
std::vector<TurnPlace> validation_places(const Schedule& schedule, const Turns& turns);

}  // namespace orrery
