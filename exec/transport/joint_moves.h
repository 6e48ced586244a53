#pragma once

#include <span>

#include "exec/transport/move_queue.h"

namespace orrery {

// Carries out a collective for all members of a group at once, in memory that one queue reaches; calls[i] is the call
// of member i. It makes the chunk moves of the named algorithm, round after round; "library" stands for the first
// algorithm of that kind of collective. Throws Error if the members' calls differ.
void carry_out(std::span<const CollectiveCall* const> calls, MoveQueue& queue);

}  // namespace orrery
