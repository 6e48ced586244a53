#pragma once

#include <span>

#include "exec/transport/move_queue.h"

namespace orrery {

// Carries out a collective for all members of a group together, in memory that one queue can access; calls[i] is the
// call of member i. The function makes the moves (sends of chunks between two members) of the named algorithm, round
// after round; for "library", the moves of the first algorithm for that kind of collective. Throws Error if the
// members' calls differ.
void carry_out(std::span<const CollectiveCall* const> calls, MoveQueue& queue);

}  // namespace orrery
