#pragma once

#include "exec/memory/buffers.h"
#include "exec/memory/rank.h"
#include "exec/transport/transport.h"

namespace orrery {

// Prepares the hand-over of a frozen model's output to the ranks of the model that trains
// (models/partition/hand_over.h): fills in the buffers of the call and what it sends to, or receives from, each rank of
// the group.
void prepare_hand_over(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call);

}  // namespace orrery
