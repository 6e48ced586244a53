// A queue must not give device memory back inside a step.
#include <gtest/gtest.h>

#include "tests/exec/cuda/null_gpu/null_gpu.h"
#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

// The packing memory of a transfer grows from step to step with what experts send. cudaFree waits for the whole device,
// and so perhaps for ranks that wait for this one.
TEST(QueueOnNullGpu, PackingMemoryGrowsWithoutFreeing) {
  cuda::use_gpu(0);
  test::OwnQueue queue;
  null_gpu::begin();
  const std::byte* first = queue->packing(16);
  queue->begin_step();
  EXPECT_EQ(queue->packing(16), first);
  queue->begin_step();
  EXPECT_NE(queue->packing(1024), first);
  EXPECT_EQ(null_gpu::calls()["cudaMalloc"], 2);
  EXPECT_EQ(null_gpu::calls()["cudaFree"], 0);
}

}  // namespace
}  // namespace orrery
