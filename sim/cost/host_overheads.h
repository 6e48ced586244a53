#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/engine/timing.h"

namespace orrery {

// Adds to the ops' issue times the host's work besides launching kernels. Some of this work comes once per layer and
// pass (with `far_us` microseconds more); some comes once per micro-batch, where a stage begins its forward (at the
// embedding, or at the receive from the previous stage) and where it begins its backward (at the output, or at the
// exchange with the next stage); and some comes once per step, divided among the ops that update the weights. row:
// times of every op on one class of ranks.
void add_host_overheads(const Plan& plan, const Software& software, double far_us, std::vector<OpTiming>& row);

// Multiplies the host's time of every op (StepFit).
void scale_host(double factor, std::vector<OpTiming>& row);

// Returns the microseconds of host time to add per layer and pass if a forward and a backward are woven. Attention,
// dispatch, experts and combine are then nodes of their own (Megatron-Core pipeline_parallel/utils.py, ScheduleNode):
// each waits for an event, detaches its inputs or starts autograd, has its tensors recorded on its stream, and records
// an event.
double woven_us(const Spec& spec);

}  // namespace orrery
