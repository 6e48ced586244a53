#pragma once

#include <cuda_runtime_api.h>

#include "exec/memory/buffers.h"

namespace orrery::cuda {

// A task that is about to be enqueued on a stream, after its waits for other tasks. Its operands, in `launch`, tell
// which bytes it reads and writes.
struct ObservedTask {
  const Rank& rank;
  const Launch& launch;
  cudaStream_t stream;
};

// A sum that a transport is about to enqueue: the numbers at `from` are added to the numbers at `into`.
struct ObservedSum {
  const std::byte *from, *into;
  std::size_t bytes;
  cudaStream_t stream;
};

}  // namespace orrery::cuda

// Hooks for tests. The imitation of the CUDA runtime with which tests check the executor (tests/exec/cuda/null_gpu)
// defines these functions; with the real CUDA runtime they are undefined and not called.
extern "C" __attribute__((weak)) void orrery_observe_task(const orrery::cuda::ObservedTask& task);
extern "C" __attribute__((weak)) void orrery_observe_sum(const orrery::cuda::ObservedSum& sum);
