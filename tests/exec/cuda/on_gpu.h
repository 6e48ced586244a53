#pragma once

#include <gtest/gtest.h>

#include "exec/cuda/device.h"
#include "tests/exec/threads_run.h"

namespace orrery::test {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::GpuCount gpus = cuda::count_gpus();
    if (gpus.count == 0) GTEST_SKIP() << "no GPU: " << gpus.why;
    cuda::use_gpu(0);
  }
};

// All ranks of a spec as threads on this GPU.
inline Result run_on_gpu(const Spec& spec, cuda::SharedGpu& gpu) {
  return run_on_threads(spec, [&](const Rank& rank, QueuedTransport& transport) {
    cuda::use_gpu(0);
    return std::make_unique<cuda::CudaDevice>(rank, gpu, transport, false);
  });
}

}  // namespace orrery::test
