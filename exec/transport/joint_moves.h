#pragma once

#include <span>

#include "exec/transport/move_queue.h"

namespace orrery {

// Carries out a collective for all members of a group at once, on memory that one queue reaches; calls[i] is member i's
// call. It makes the chunk moves of the named algorithm, round after round; for "library", those of the first algorithm
// of the same kind. Throws Error where the members' calls do not fit each other.
void carry_out(std::span<const CollectiveCall* const> calls, MoveQueue& queue);

}  // namespace orrery
