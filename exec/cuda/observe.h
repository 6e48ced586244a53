#pragma once

#include <cuda_runtime_api.h>

#include "exec/memory/buffers.h"

namespace orrery::cuda {

// A task about to be enqueued on a stream, behind its waits: its arguments say which bytes it reads and writes.
struct ObservedTask {
  const Rank& rank;
  const Launch& launch;
  cudaStream_t stream;
};

// A sum about to be enqueued by a transport: bytes that lie at `from` are added to those at `into`.
struct ObservedSum {
  const std::byte *from, *into;
  std::size_t bytes;
  cudaStream_t stream;
};

}  // namespace orrery::cuda

// Defined by what is linked in place of the CUDA runtime to check the executor (tests/exec/cuda/null_gpu); with the
// runtime itself nobody defines them, and nothing is called.
extern "C" __attribute__((weak)) void orrery_observe_task(const orrery::cuda::ObservedTask& task);
extern "C" __attribute__((weak)) void orrery_observe_sum(const orrery::cuda::ObservedSum& sum);
