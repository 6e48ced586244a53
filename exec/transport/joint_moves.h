#pragma once

#include <span>

#include "exec/transport/move_queue.h"

namespace orrery {

// A collective of all members of a group at once, on memory that one queue reaches: calls[i] is member i's. The chunk
// moves of the named algorithm, round after round; of the library's, those of the first algorithm that carries out its
// kind. Throws Error where the members' calls do not fit each other.
void carry_out(std::span<const CollectiveCall* const> calls, MoveQueue& queue);

}  // namespace orrery
