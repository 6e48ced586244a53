// Every strategy with its ranks as threads on one GPU, against one CPU rank: the path of exec/host/queue_lanes.h and
// exec/transport/threads_transport.h, which tests/exec/host/queue_lanes_test.cpp tests on the host, with the CUDA
// kernels.
#include <gtest/gtest.h>

#include "tests/exec/cuda/on_gpu.h"
#include "tests/exec/cuda/strategies.h"

namespace orrery {
namespace {

using test::Case;
using test::OnGpu;

class CudaStrategies : public OnGpu, public testing::WithParamInterface<Case> {};

// Strategies in fp32 agree with one CPU rank.
TEST_P(CudaStrategies, AgreeWithOneCpuRank) {
  const Spec spec = spec_of(GetParam());
  cuda::SharedGpu gpu;
  expect_like_cpu(spec, test::run_on_gpu(spec, gpu), test::on_one_cpu_rank);
}

INSTANTIATE_TEST_SUITE_P(All, CudaStrategies, testing::ValuesIn(test::kStrategies));

// A GPU rank with delayed optimizer updates agrees with a CPU rank that delays them too;
// tests/exec/mpi/offload_test.cpp compares the latter with updates delayed by hand.
TEST_F(OnGpu, DelayedUpdatesAgreeWithACpuRank) {
  for (const char* strategy :
       {"data: 1, global_batch: 2, offload: {optimizer: {device: cpu, delayed_update: true, tile: 9001}}",
        "data: 1, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, delayed_update: true}, "
        "gradients: cpu}"}) {
    SCOPED_TRACE(strategy);
    const Spec spec = spec_of(Case{test::kLlama, strategy});
    cuda::SharedGpu gpu;
    expect_like_cpu(spec, test::run_on_gpu(spec, gpu), test::on_cpu_rank);
  }
}

}  // namespace
}  // namespace orrery
