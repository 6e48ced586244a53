#pragma once

#include <cstdint>
#include <vector>

#include "models/planner/step_part.h"

// This header has the copies between the device and states that lie on the host or on disks (ZeRO-Offload, Ren et al.
// 2021, 2101.06840; ZeRO-Infinity, Rajbhandari et al. 2021, 2104.07857). Every rank copies its own shards over its own
// PCIe link.

namespace orrery {

// Returns an op that copies from one memory tier to another, on the lane for this pair of tiers; `work` names the
// tiers.
Op copy_op(const char* name, Phase phase, const PlaceCopy& work, const Operand& from, const Operand& to);

// Returns the index of the state buffer into which this step's gradients are offloaded on the host. If the update of
// the previous step is delayed, it reads another buffer at the same time.
std::uint16_t arriving_gradients(const PlanFacts& facts);
// Returns the index of the state buffer with the gradients that the host's update reads.
std::uint16_t due_gradients(const PlanFacts& facts);

// Copies a bucket's gradients from the device to the host.
void offload_bucket(const Draft& draft, TaskWriter& writer, const Chunk& chunk, const Bucket& bucket,
                    const std::vector<TaskId>& after);

}  // namespace orrery
