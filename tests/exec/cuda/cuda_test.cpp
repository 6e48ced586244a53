// Ranks on one GPU against one CPU rank: the path of exec/queue_lanes.h and exec/threads_transport.h, which
// tests/exec/queue_lanes_test.cpp tests on the host, with the CUDA kernels. Without a GPU all of it is skipped.
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "exec/alone_transport.h"
#include "exec/cuda/cuda_device.h"
#include "tests/exec/cuda/on_gpu.h"
#include "tests/exec/jobs.h"
#include "tests/exec/threads_run.h"

namespace orrery {
namespace {

using cuda::CudaDevice;
using test::Case;
using test::OnGpu;

class CudaStrategies : public OnGpu, public testing::WithParamInterface<Case> {};

test::Result run_on_gpu(const Spec& spec, cuda::SharedGpu& gpu) {
  return test::run_on_threads(spec, [&](const Rank& rank, QueuedTransport& transport) {
    cuda::use_gpu(0);
    return std::make_unique<CudaDevice>(rank, gpu, transport, false);
  });
}

// fp32 throughout. Sums are taken in another order than on the CPU, and exponentials differ in their last bit: three
// times the limits that CPU ranks keep among themselves.
TEST_P(CudaStrategies, AgreeWithOneCpuRank) {
  const Spec spec = spec_of(GetParam());
  cuda::SharedGpu gpu;
  expect_close(distance(spec, run_on_gpu(spec, gpu), test::on_one_cpu_rank(spec)), 3);
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
};
INSTANTIATE_TEST_SUITE_P(All, CudaStrategies, testing::ValuesIn(kCases));

class CudaRank : public OnGpu {};

struct Ran {
  Execution execution;
  TaskId tasks = 0;
};

Ran run_alone(const std::string& strategy, const std::string& model, std::int64_t steps, bool one_queue = false) {
  const test::Job job(test::spec_of(model, strategy, 64));
  const Rank rank = job.rank(0);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/data/text.txt", job.spec.model.vocab, job.spec.sequence);
  const auto transport = alone_transport(rank, {});
  cuda::SharedGpu gpu;
  CudaDevice device(rank, gpu, *transport, one_queue);
  ExecuteOptions options;
  options.steps = steps;
  options.training.rule.learning_rate = 3e-3;
  options.training.clip = 1;
  return {execute(rank, device, text, options), rank.plan.task_count()};
}

const std::string kSmall = "name: small, layers: 1, hidden: 64, heads: 2, kv_heads: 1, feed_forward: 96, vocab: 64";

TEST_F(CudaRank, TrainsInBf16) {
  const std::vector<double> losses =
      run_alone("precision: bf16, gradient_precision: fp32, global_batch: 4, micro_batch: 2", kSmall, 12)
          .execution.losses;
  EXPECT_NEAR(losses.front(), std::log(64), 0.2);
  EXPECT_LT(losses.back(), losses.front() - 0.2);
}

TEST_F(CudaRank, SpansAreOrderedAndOnTheHostsClock) {
  const Picoseconds before = host_now();
  const Ran ran = run_alone("precision: bf16, global_batch: 4", kSmall, 4);
  const Picoseconds after = host_now();
  ASSERT_EQ(ran.execution.steps.size(), 4U);
  for (const MeasuredStep& step : ran.execution.steps) {
    ASSERT_EQ(step.spans.size(), ran.tasks);
    Picoseconds ended = step.begin;
    for (const MeasuredSpan& s : step.spans) {
      EXPECT_LE(s.issued, s.entered);
      EXPECT_LE(s.entered, s.ended);
      EXPECT_LE(ended, s.ended);  // one lane
      ended = s.ended;
    }
    EXPECT_GT(step.begin, before);
    EXPECT_LT(step.end, after + 1'000'000'000);  // give or take a millisecond
  }
}

// What one GPU's allocator counts is what the CPU's does, but for the libraries' workspace.
TEST_F(CudaRank, CountsItsMemory) {
  const MeasuredMemory m = run_alone("precision: bf16, global_batch: 4", kSmall, 2).execution.memory;
  Bytes sum = 0;
  for (const Bytes b : m.at_peak) sum += b;
  EXPECT_EQ(sum, m.peak);
  EXPECT_LE(m.peak, m.peak_reserved);
  EXPECT_LT(m.peak_reserved, m.peak_device);
  EXPECT_LT(m.peak_device, m.capacity);
}

TEST_F(CudaRank, TheSameRunGivesTheSameLosses) {
  const std::string fp32 = "precision: fp32, gradient_precision: fp32, global_batch: 4";
  EXPECT_EQ(run_alone(fp32, kSmall, 3).execution.losses, run_alone(fp32, kSmall, 3).execution.losses);
}

}  // namespace
}  // namespace orrery
