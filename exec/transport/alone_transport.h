#pragma once

#include <memory>

#include "exec/memory/rank.h"
#include "exec/transport/move_queue.h"

namespace orrery {

// Returns the transport of a rank that runs without the other ranks, to measure its computation and memory. Nothing is
// sent. Every other member of a group is assumed to have the same data as this rank, and received messages are filled
// with the bytes of `bank`, repeated (numbers distributed like weights, so that matrix products draw a realistic
// power). In place of the other ranks' data, bank's numbers are added to sums in bf16: this rank's own data may be
// zeros, as the embedding rows of tokens in another rank's part of the vocabulary are, and a GPU multiplies zeros at
// higher clocks. Losses and weights of a run with this transport mean nothing. rank and bank must outlive the
// transport.
std::unique_ptr<QueuedTransport> alone_transport(const Rank& rank, std::span<const std::byte> bank);

}  // namespace orrery
