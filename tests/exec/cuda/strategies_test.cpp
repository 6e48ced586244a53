// Every strategy with its ranks as threads on one GPU, against one CPU rank: the path of exec/host/queue_lanes.h and
// exec/transport/threads_transport.h, which tests/exec/host/queue_lanes_test.cpp tests on the host, with the CUDA
// kernels.
#include <gtest/gtest.h>

#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

using test::Case;
using test::OnGpu;

class CudaStrategies : public OnGpu, public testing::WithParamInterface<Case> {};

// fp32 throughout.
TEST_P(CudaStrategies, AgreeWithOneCpuRank) {
  const Spec spec = spec_of(GetParam());
  cuda::SharedGpu gpu;
  expect_like_cpu(spec, test::run_on_gpu(spec, gpu), test::on_one_cpu_rank);
}

const Case kCases[] = {
    {test::kLlama, "data: 1, global_batch: 2"},
    {test::kLlama, "data: 1, global_batch: 2, recompute: full"},
    {test::kGpt, "data: 1, global_batch: 2, attention: unfused"},
    {test::kGpt, "data: 1, global_batch: 4, micro_batch: 2"},
    {test::kQwen, "data: 1, global_batch: 2"},
    {test::kLlama, "data: 2, global_batch: 4"},
    {test::kLlama, "data: 2, sharding: zero1, global_batch: 4"},
    {test::kGpt, "data: 2, sharding: zero2, global_batch: 4"},
    {test::kLlama, "data: 2, sharding: zero3, global_batch: 4"},
    {test::kLlama, "data: 3, sharding: fsdp, global_batch: 6"},
    {test::kLlama, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {test::kGpt, "tensor: 2, data: 1, global_batch: 2"},
    {test::kQwen, "tensor: 4, data: 1, sequence_parallel: false, attention: unfused, global_batch: 2"},
    {test::kLlama, "pipeline: 4, data: 1, global_batch: 4"},
    {test::kLlama, "pipeline: 2, virtual_stages: 2, data: 1, global_batch: 4"},
    {test::kGpt, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {test::kLlama,
     "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 9001}, gradients: cpu}"},
    {test::kGpt, "data: 2, sharding: zero1, global_batch: 4, offload: {optimizer: cpu, activations: cpu}"},
    {test::kLlama,
     "data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {test::kLlama,
     "data: 2, sharding: zero3, global_batch: 4, prefetch_units: 2, units_in_flight: 4, offload: {optimizer: {device: "
     "nvme, tile: 9001}, gradients: nvme, parameters: nvme}"},
    {test::kGpt,
     "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: cpu, gradients: cpu, "
     "parameters: cpu, tiling: 2}"},
    {test::kGpt, "tensor: 2, pipeline: 2, data: 1, global_batch: 4, offload: {optimizer: cpu, gradients: cpu}"},
    {test::kGpt,
     "tensor: 2, data: 1, sequence_parallel: false, global_batch: 2, recompute: full, partition_activations: true, "
     "offload: {activations: cpu}"},
    {test::kLlama, "data: 2, global_batch: 4, fused_buffers: true, bucket_MiB: 0.05"},
    {test::kLlama, "pipeline: 4, data: 1, schedule: vocab-1f1b, global_batch: 8"},
    {test::kGpt, "pipeline: 2, data: 2, schedule: vocab-1f1b-alg1, sharding: zero1, global_batch: 8"},
    {test::kLlama, "pipeline: 2, data: 1, stage_replicas: [2, 1], schedule: dapple, micro_batch: 2, global_batch: 8"},
    {test::kLlama,
     "pipeline: 2, data: 1, stage_replicas: [1, 3], schedule: dapple, sharding: zero1, micro_batch: 3, global_batch: "
     "12"},
    {test::kLlama, "context: 2, context_kind: ulysses, data: 2, sharding: zero1, global_batch: 4"},
    {test::kGpt, "context: 2, context_kind: ulysses, tensor: 2, data: 1, global_batch: 2"},
};
INSTANTIATE_TEST_SUITE_P(All, CudaStrategies, testing::ValuesIn(kCases));

// A delayed update against a CPU rank that delays it too, which tests/exec/mpi/offload_test.cpp holds to a delay made
// by hand.
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
