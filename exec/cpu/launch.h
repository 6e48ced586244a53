#pragma once

#include "exec/host/run_state.h"
#include "exec/memory/buffers.h"

namespace orrery {

// Runs one task's kernels on this thread. Not for transfers.
void launch_on_cpu(RunState& state, const Launch& launch);

}  // namespace orrery
