// Ranks on one GPU, against one CPU rank and on their own. Without a GPU all of it is skipped.
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "exec/cuda/device.h"
#include "exec/transport/alone_transport.h"
#include "tests/exec/cuda/on_gpu.h"
#include "tests/exec/jobs.h"
#include "tests/exec/threads_run.h"

namespace orrery {
namespace {

using cuda::CudaDevice;
using test::Case;
using test::OnGpu;

// Strategies small enough for the emulated GPU; strategies_test.cpp has all of them.
class SmallCudaStrategies : public OnGpu, public testing::WithParamInterface<Case> {};

TEST_P(SmallCudaStrategies, AgreeWithOneCpuRank) {
  const Spec spec = spec_of(GetParam());
  cuda::SharedGpu gpu;
  expect_like_cpu(spec, test::run_on_gpu(spec, gpu), test::on_one_cpu_rank);
}

const std::string kTinyLlama =
    "{name: tiny, layers: 2, hidden: 16, heads: 2, kv_heads: 2, feed_forward: 24, vocab: 40, qk_norm: true}";
const std::string kTinyGpt =
    "{name: tiny, layers: 2, hidden: 16, heads: 2, feed_forward: 32, vocab: 40, gated: false, positions: learned, "
    "norm: layernorm, bias: true, tied_embeddings: true, dropout: 0.1}";
const Case kDeviceCases[] = {
    {kTinyLlama, "data: 1, global_batch: 1, recompute: full"},
    {kTinyGpt, "data: 1, global_batch: 2, attention: unfused"},
    {kTinyLlama, "data: 2, sharding: fsdp, global_batch: 2"},
    {kTinyGpt, "tensor: 2, data: 1, global_batch: 1"},
    {kTinyGpt, "pipeline: 2, data: 1, sharding: none, global_batch: 2"},
    {kTinyLlama, "data: 2, sharding: zero1, global_batch: 2"},
    {kTinyLlama,
     "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 501}, gradients: cpu}"},
    {kTinyGpt, "data: 1, global_batch: 1, offload: {optimizer: {device: cpu, tile: 701}, activations: cpu}"},
    {kTinyLlama,
     "data: 2, sharding: zero3, global_batch: 2, recompute: full, offload: {optimizer: {device: nvme, tile: 501}, "
     "gradients: nvme, parameters: nvme, activations: nvme, tiling: 2}"},
    {kTinyGpt,
     "tensor: 2, data: 1, sequence_parallel: false, global_batch: 1, recompute: full, partition_activations: true"},
    {kTinyLlama, "data: 2, sharding: zero1, global_batch: 2, fused_buffers: true, bucket_MiB: 0.005"},
    {kTinyLlama, "pipeline: 2, data: 1, schedule: vocab-1f1b, global_batch: 2"},
    {kTinyGpt, "pipeline: 2, data: 1, schedule: vocab-1f1b-alg1, global_batch: 2"},
    {kTinyLlama, "pipeline: 2, data: 1, stage_replicas: [2, 1], schedule: dapple, micro_batch: 2, global_batch: 4"},
    {kTinyLlama, "context: 2, context_kind: ulysses, data: 1, global_batch: 1"},
    {kTinyGpt, "context: 2, context_kind: ulysses, data: 1, global_batch: 1"},
};
INSTANTIATE_TEST_SUITE_P(Small, SmallCudaStrategies, testing::ValuesIn(kDeviceCases));

class CudaRank : public OnGpu {};

TEST_F(CudaRank, DelaysAnUpdateLikeACpuRank) {
  const Spec spec = spec_of(Case{
      kTinyLlama, "data: 1, global_batch: 2, offload: {optimizer: {device: cpu, delayed_update: true, tile: 501}}"});
  cuda::SharedGpu gpu;
  expect_like_cpu(spec, test::run_on_gpu(spec, gpu), test::on_cpu_rank);
}

struct Ran {
  Execution execution;
  TaskId tasks = 0;
};

Ran run_alone(const std::string& strategy, const std::string& model, std::int64_t steps, bool one_queue = false,
              std::int64_t mark_every = 1) {
  const test::Job job(test::spec_of(model, strategy, 32));
  const Rank rank = job.rank(0);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", job.spec.model.vocab, job.spec.sequence);
  const auto transport = alone_transport(rank, {});
  cuda::SharedGpu gpu;
  CudaDevice device(rank, gpu, *transport, one_queue, mark_every);
  ExecuteOptions options;
  options.steps = steps;
  options.training.rule.learning_rate = 3e-3;
  options.training.clip = 1;
  return {execute(rank, device, text, options), rank.plan.task_count()};
}

const std::string kSmall = "name: small, layers: 1, hidden: 32, heads: 2, kv_heads: 1, feed_forward: 48, vocab: 64";

TEST_F(CudaRank, TrainsInBf16) {
  const std::vector<double> losses =
      run_alone("precision: bf16, gradient_precision: fp32, global_batch: 2, micro_batch: 2", kSmall, 12)
          .execution.losses;
  ASSERT_EQ(losses.size(), 12U);
  if (!test::computes()) return;
  EXPECT_NEAR(losses.front(), std::log(64), 0.2);
  EXPECT_LT(losses.back(), losses.front() - 0.2);
}

TEST_F(CudaRank, SpansAreOrderedAndOnTheHostsClock) {
  const Picoseconds before = host_now();
  const Ran ran = run_alone("precision: bf16, global_batch: 2", kSmall, 4);
  const Picoseconds after = host_now();
  ASSERT_EQ(ran.execution.steps.size(), 4U);
  for (const MeasuredStep& step : ran.execution.steps) {
    ASSERT_EQ(step.spans.size(), ran.tasks);
    Picoseconds ended = step.begin;
    for (const MeasuredSpan& s : step.spans) {
      EXPECT_LE(s.issued, s.entered);
      EXPECT_LE(s.entered, s.ended);
      EXPECT_LE(ended, s.ended);  // tasks run one by one
      ended = s.ended;
    }
    EXPECT_GT(step.begin, before);
    EXPECT_LT(step.end, after + 1'000'000'000);  // with a millisecond of tolerance
  }
}

// With marks in each third step only, the others tell how long they took, and all steps give the same losses.
TEST_F(CudaRank, TimesTheTasksOfEachThirdStep) {
  const std::string strategy = "precision: fp32, gradient_precision: fp32, global_batch: 2";
  const Picoseconds before = host_now();
  const Ran ran = run_alone(strategy, kSmall, 8, false, 3);
  const Picoseconds whole = host_now() - before;
  ASSERT_EQ(ran.execution.steps.size(), 3U);  // steps 0, 3 and 6
  ASSERT_EQ(ran.execution.unmarked.size(), 5U);
  Picoseconds sum = 0, ended = 0;
  for (const Picoseconds step : ran.execution.unmarked) {
    EXPECT_GT(step, 0);
    sum += step;
  }
  EXPECT_LT(sum, whole);
  for (const MeasuredStep& step : ran.execution.steps) {
    ASSERT_EQ(step.spans.size(), ran.tasks);
    EXPECT_LT(ended, step.begin);
    EXPECT_LT(step.begin, step.spans.front().ended);
    ended = step.end;
  }
  EXPECT_EQ(ran.execution.losses, run_alone(strategy, kSmall, 8).execution.losses);
}

// The categories of memory sum to the peak, and peak <= reserved < memory used on the device < capacity.
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
