#pragma once

#include "exec/host/run_state.h"
#include "exec/memory/buffers.h"

namespace orrery {

// Runs the kernels of one task on the calling thread; not for tasks that transfer data between ranks.
void launch_on_cpu(RunState& state, const Launch& launch);

}  // namespace orrery
