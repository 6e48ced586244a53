#pragma once

#include <cstdint>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// Returns the operand of the gradients that the optimizer reads: the rank's shard if gradients are reduced unit by unit
// (FSDP, ZeRO-2 and 3), else the complete gradients.
Operand optimizer_gradients(const Draft& draft, Access access);

// Returns whether the optimizer's ops multiply gradients by the clip coefficient themselves, as they read them.
bool clips_in_update(const Draft& draft);

// Divides `elements` gradients from element `first` on by the number of ranks that compute losses of different tokens,
// in frameworks that do so in a separate kernel.
void average(const Draft& draft, TaskWriter& writer, std::uint32_t frame, const Operand& gradients, std::int64_t first,
             std::int64_t elements);

void zero_gradients(const Draft& draft, TaskWriter& writer, const Chunk& chunk, const std::vector<TaskId>& after);

// Returns, for each lane on which gradients are reduced, the last task written so far.
std::vector<TaskId> after_reductions(const TaskWriter& writer);

// Sums one number, such as the squared gradient norm, over all ranks of a replica; with post-update validation only
// over the ranks of this stage, because the sum over stages comes later. Returns the tasks after which the sum is
// known.
std::vector<TaskId> sum_over_model(const Draft& draft, TaskWriter& writer, const char* name, std::uint16_t number,
                                   bool maximum);

// Sums the squares of all gradients on the device, then over the ranks that hold the other gradients of the model.
std::vector<TaskId> device_norm(const Draft& draft, TaskWriter& writer, std::uint16_t number,
                                const std::vector<TaskId>& after);

}  // namespace orrery
