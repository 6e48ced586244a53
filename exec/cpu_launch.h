#pragma once

#include "exec/buffers.h"
#include "exec/run_state.h"

namespace orrery {

// Runs one task's kernels on this thread. Not for transfers.
void launch_on_cpu(RunState& state, const Launch& launch);

}  // namespace orrery
