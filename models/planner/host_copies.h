#pragma once

#include <cstdint>
#include <vector>

#include "models/planner/step_part.h"

// This header has the memcpys between the device and states that lie on the host or on disks (ZeRO-Offload, Ren et al.
// 2021, 2101.06840; ZeRO-Infinity, Rajbhandari et al. 2021, 2104.07857). Every rank moves its own shards over its own
// link.

namespace orrery {

// Returns a copy op on the lane between the two memory tiers that `work` names.
Op copy_op(const char* name, Phase phase, const PlaceCopy& work, const Operand& from, const Operand& to);

// Returns the index of the state buffer in which gradients arrive on the host; a delayed update of the previous step
// reads a different buffer.
std::uint16_t arriving_gradients(const PlanFacts& facts);
// Returns the index of the state buffer with the gradients that the host's update reads.
std::uint16_t due_gradients(const PlanFacts& facts);

// Copies a bucket's gradients from the device to the host.
void offload_bucket(const Draft& draft, TaskWriter& writer, const Chunk& chunk, const Bucket& bucket,
                    const std::vector<TaskId>& after);

}  // namespace orrery
