#pragma once

#include <cuda_runtime_api.h>

#include "exec/host/initial.h"

namespace orrery::cuda {

// Sets initial weights in device memory, as initial_on_host() does in host memory; the last bit of a value may differ.
// run.rows and run.columns are in host memory. Returns when the stream has finished.
void initial_on_cuda(const InitialRun& run, cudaStream_t stream);

}  // namespace orrery::cuda
