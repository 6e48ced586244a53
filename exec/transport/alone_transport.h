#pragma once

#include <memory>

#include "exec/memory/rank.h"
#include "exec/transport/move_queue.h"

namespace orrery {

// The transport of a rank that runs alone, to measure its computation and memory: nothing is sent, and received data is
// made up: every other member of a group is taken to have the same data as this rank, and messages bring a stretch of
// `bank` again and again (numbers with about the spread of weights, so that products draw usual power). The run's
// numerical results mean nothing. rank and bank must outlive the transport.
std::unique_ptr<QueuedTransport> alone_transport(const Rank& rank, std::span<const std::byte> bank);

}  // namespace orrery
