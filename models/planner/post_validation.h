#pragma once

#include <cstddef>
#include <vector>

#include "models/schedule/transfer_order.h"

namespace orrery {

// Post-update validation (Qi et al. 2024, arXiv 2401.10241, section 4): a stage updates by what the stages before it
// know of the gradients' norm, and begins the next step; in that step the norm over all stages comes back from the last
// one. If that norm clips, or is not finite, every stage takes its update back, makes it again, and runs again what it
// did since.

// A place among a stage's transfers: before number `crossing` of turn `turn`, or behind the last of them.
struct TurnPlace {
  std::size_t turn = 0, crossing = 0;

  friend bool operator==(const TurnPlace&, const TurnPlace&) = default;
};

// For every stage the last place before its first backward such that no transfer has one end before these places and
// the other behind: all stages can run again what they did so far. Transfers in which several stages take part (moved
// activations, a shared vocabulary) come behind.
std::vector<TurnPlace> validation_places(const Schedule& schedule, const Turns& turns);

}  // namespace orrery
