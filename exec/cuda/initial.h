#pragma once

#include <cuda_runtime_api.h>

#include "exec/host/initial.h"

namespace orrery::cuda {

// Does what initial_on_host() does, on device memory; the last bit of a value may differ. rows and columns lie on the
// host; waits for the stream.
void initial_on_cuda(const InitialRun& run, cudaStream_t stream);

}  // namespace orrery::cuda
