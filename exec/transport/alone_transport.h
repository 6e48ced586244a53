#pragma once

#include <memory>

#include "exec/memory/rank.h"
#include "exec/transport/move_queue.h"

namespace orrery {

// The transport of a rank that runs alone, to measure what it computes and holds: nothing leaves it, and what would
// come in is replaced by numbers of its own: every other member of a group has what it has itself, and messages bring a
// stretch of `bank` again and again (numbers of about the spread of weights, so that products draw usual power). Its
// results mean nothing. rank and bank outlive it.
std::unique_ptr<QueuedTransport> alone_transport(const Rank& rank, std::span<const std::byte> bank);

}  // namespace orrery
