#include "exec/host/queue_lanes.h"

#include <gtest/gtest.h>

#include "exec/transport/alone_transport.h"
#include "tests/exec/host_queue.h"
#include "tests/exec/jobs.h"
#include "tests/exec/threads_run.h"

namespace orrery {
namespace {

using test::Case;
using test::QueuedHostDevice;
using test::tiny_job;

std::unique_ptr<RankDevice> on_host(const Rank& rank, QueuedTransport& transport) {
  return std::make_unique<QueuedHostDevice>(rank, transport);
}

class QueuedStrategies : public testing::TestWithParam<Case> {};

// Ranks with queues, as GPU ranks have, but as threads with the CPU's kernels, agree with one CPU rank.
TEST_P(QueuedStrategies, AgreeWithOneRank) {
  const Spec spec = spec_of(GetParam());
  expect_close(distance(spec, test::run_on_threads(spec, on_host), test::on_one_cpu_rank(spec)));
}

const Case kQueueCases[] = {
    {test::kLlama, "data: 1, global_batch: 2, recompute: full"},
    {test::kLlama, "data: 2, global_batch: 4"},
    {test::kLlama, "data: 2, sharding: zero1, global_batch: 4"},
    {test::kLlama, "data: 2, sharding: zero2, global_batch: 4"},
    {test::kLlama, "data: 2, sharding: zero3, global_batch: 4"},
    {test::kLlama, "data: 3, sharding: fsdp, global_batch: 6"},
    {test::kLlama, "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {test::kGpt, "tensor: 2, data: 1, global_batch: 2"},
    {test::kLlama, "pipeline: 4, data: 1, global_batch: 4"},
    {test::kLlama, "pipeline: 2, virtual_stages: 2, data: 1, global_batch: 4"},
    {test::kGpt, "tensor: 2, pipeline: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {test::kQwen, "tensor: 4, data: 2, sharding: fsdp, global_batch: 2"},
    {test::kLlama,
     "data: 2, sharding: zero2, global_batch: 4, offload: {optimizer: {device: cpu, tile: 9001}, gradients: cpu}"},
    {test::kLlama,
     "data: 2, sharding: zero3, global_batch: 4, recompute: full, offload: {optimizer: nvme, gradients: nvme, "
     "parameters: nvme, activations: nvme, tiling: 4}"},
    {test::kLlama, "context: 2, context_kind: ulysses, data: 1, global_batch: 2"},
    {test::kLlama, "context: 4, context_kind: {ring: 2, ulysses: 2}, data: 1, global_batch: 2"},
};
INSTANTIATE_TEST_SUITE_P(All, QueuedStrategies, testing::ValuesIn(kQueueCases));

struct RecordedRun {
  Execution execution;
  std::vector<int> queue_of;
  std::vector<std::pair<int, TaskId>> waits;
  int queues = 0;
};

RecordedRun run_alone(const test::Job& job, std::int64_t number, bool one_queue, Watcher watcher = {}) {
  const Rank rank = job.rank(number);
  const Text text = read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", job.spec.model.vocab, job.spec.sequence);
  const std::vector<std::byte> bank(4096);
  const auto transport = alone_transport(rank, bank);
  QueuedHostDevice device(rank, *transport, one_queue);
  ExecuteOptions options;
  options.steps = 3;
  options.watcher = std::move(watcher);
  RecordedRun r{execute(rank, device, text, options), {}, {}, 0};
  r.queue_of = device.queues().queue_of;
  r.waits = device.queues().waits;
  r.queues = device.queues().queues();
  return r;
}

constexpr const char* kStrategies[] = {"data: 2, global_batch: 4", "data: 2, global_batch: 4, sharding: fsdp",
                                       "tensor: 2, data: 2, sharding: zero1, global_batch: 2",
                                       "pipeline: 2, global_batch: 4",
                                       "pipeline: 2, virtual_stages: 2, global_batch: 4"};

// Lanes have separate queues: a task waits for the last task that it depends on in each other queue, and its span shows
// that.
TEST(QueueLanes, WaitForWhatTasksDependOn) {
  for (const char* strategy : kStrategies) {
    SCOPED_TRACE(strategy);
    const test::Job job =
        tiny_job(strategy, "name: tiny, layers: 4, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 64");
    const Rank rank = job.rank(job.plan.ranks - 1);
    const RecordedRun r = run_alone(job, rank.number, false);
    EXPECT_GT(r.queues, 1);
    EXPECT_FALSE(r.waits.empty());
    ASSERT_EQ(r.execution.steps.size(), 3U);
    for (const MeasuredStep& step : r.execution.steps) {
      std::map<int, Picoseconds> free;
      for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
        const MeasuredSpan& s = step.spans[t];
        EXPECT_LE(step.begin, s.issued);
        EXPECT_LE(s.issued, s.entered);
        EXPECT_LE(s.entered, s.ended);
        for (const TaskId d : rank.plan.dependencies_of(t)) EXPECT_LE(step.spans[d].ended, s.entered) << d;
        EXPECT_LE(free[r.queue_of[t]], s.entered);
        free[r.queue_of[t]] = s.ended;
        EXPECT_LE(s.ended, step.end);
      }
    }
  }
}

TEST(QueueLanes, OneQueueRunsEveryTaskAlone) {
  for (const char* strategy : kStrategies) {
    const test::Job job = tiny_job(strategy);
    const RecordedRun r = run_alone(job, 0, true);
    EXPECT_EQ(r.queues, 1);
    EXPECT_TRUE(r.waits.empty());
    std::vector<MeasuredSpan> spans = r.execution.steps.back().spans;
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.ended < b.ended; });
    for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_LE(spans[i - 1].ended, spans[i].entered);
  }
}

// Memory does not depend on which other ranks run: a rank that runs alone allocates as many bytes as one among others.
TEST(QueueLanes, ARankAloneHoldsAsMuchMemory) {
  for (const char* strategy : kStrategies) {
    const test::Job job = tiny_job(strategy);
    const RecordedRun alone = run_alone(job, 0, true), lanes = run_alone(job, 0, false);
    EXPECT_EQ(alone.execution.memory.peak, lanes.execution.memory.peak);
    EXPECT_EQ(alone.execution.memory.at_peak, lanes.execution.memory.at_peak);
    EXPECT_FALSE(std::isnan(alone.execution.losses.empty() ? 0 : alone.execution.losses.back()));
  }
}

TEST(QueueLanes, TellTheWatcherOfEveryTask) {
  const test::Job job = tiny_job("data: 2, global_batch: 4");
  const TaskId n = job.rank(0).plan.task_count();
  std::vector<int> entered(n), left(n);
  run_alone(job, 0, false, [&](TaskId t, bool enters) {
    ++(enters ? entered : left)[t];
    EXPECT_EQ(entered[t], left[t] + (enters ? 1 : 0));
  });
  EXPECT_EQ(entered, std::vector<int>(n, 3));
  EXPECT_EQ(left, entered);
}

}  // namespace
}  // namespace orrery
