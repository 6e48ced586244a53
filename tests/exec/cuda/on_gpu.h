#pragma once

#include <gtest/gtest.h>

#include "exec/cuda/cuda_device.h"

namespace orrery::test {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::GpuCount gpus = cuda::count_gpus();
    if (gpus.count == 0) GTEST_SKIP() << "no GPU: " << gpus.why;
    cuda::use_gpu(0);
  }
};

}  // namespace orrery::test
