#include "exec/cpu/host_lanes.h"

#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "tests/exec/fake_transport.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using test::FakeTransport;
using test::Job;
using test::tiny_job;

// Runs the tasks of a rank without their kernels: buffers are taken and returned, transfers end after a few looks.
class DryRun {
 public:
  DryRun(const Rank& rank, FakeTransport& transport, std::function<void(const Launch&)> compute, Watcher watcher = {})
      : rank_(rank),
        memory_(host_segments()),
        buffers_(rank, memory_),
        lanes_(rank, transport, std::move(compute), std::move(watcher)) {}

  void submit(TaskId t) {
    const Picoseconds issued = host_now();
    Launch launch = buffers_.issue(t, [&](TaskId d) { return lanes_.completed(d); });
    after_.push_back(launch.after);
    lanes_.submit(std::move(launch), issued);
  }

  void step() {
    after_.clear();
    lanes_.begin_step();
    for (TaskId t = 0; t < rank_.plan.task_count(); ++t) submit(t);
    lanes_.end_step();
    buffers_.end_step();
  }

  HostLanes& lanes() { return lanes_; }
  const std::vector<TaskId>& after(TaskId t) const { return after_[t]; }

 private:
  const Rank& rank_;
  CachingMemory memory_;
  Buffers buffers_;
  std::vector<std::vector<TaskId>> after_;
  HostLanes lanes_;
};

void check_spans(const Rank& rank, DryRun& run) {
  const std::vector<Span> spans = run.lanes().spans().back();
  std::map<std::uint32_t, TaskId> last;
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    const Span& s = spans[t];
    EXPECT_LE(s.issued, s.entered);
    EXPECT_LE(s.entered, s.ended);
    for (const TaskId d : rank.plan.dependencies_of(t)) EXPECT_LE(spans[d].ended, s.entered) << d << " before " << t;
    for (const TaskId d : run.after(t)) EXPECT_LE(spans[d].ended, s.entered) << d << " before " << t;
    const std::uint32_t lane = rank.plan.tasks[t].lane;
    const bool joins = (rank.plan.tasks[t].flags & kJoinsPrevious) != 0;
    if (const auto it = last.find(lane); it != last.end() && !joins) {
      EXPECT_LE(spans[it->second].ended, s.entered);
    }
    last[lane] = t;
    EXPECT_TRUE(run.lanes().completed(t));
  }
}

TEST(HostLanes, RunInOrderAndRespectDependencies) {
  for (const char* strategy : {"data: 2, global_batch: 4", "data: 2, global_batch: 4, sharding: fsdp",
                               "tensor: 2, data: 2, sharding: zero1", "pipeline: 2, global_batch: 4",
                               "pipeline: 2, virtual_stages: 2, global_batch: 4", "tensor: 2, global_batch: 2"}) {
    SCOPED_TRACE(strategy);
    const Job job = tiny_job(
        std::string(strategy) + (std::string(strategy).find("batch") == std::string::npos ? ", global_batch: 2" : ""),
        "name: tiny, layers: 4, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 64");
    for (const std::int64_t number : {std::int64_t{0}, job.plan.ranks - 1}) {
      const Rank rank = job.rank(number);
      FakeTransport transport(3);
      DryRun run(rank, transport, [](const Launch&) {});
      for (int step = 0; step < 3; ++step) {
        run.step();
        check_spans(rank, run);
      }
      EXPECT_GT(transport.started(), 0);
    }
  }
}

// Transfers of a batch start together, and none ends before all of them can.
TEST(HostLanes, BatchesStartAndEndTogether) {
  const Job job = tiny_job("pipeline: 4, global_batch: 8",
                           "name: tiny, layers: 4, hidden: 32, heads: 4, feed_forward: 48, vocab: 64");
  const Rank rank = job.rank(1);
  FakeTransport transport(5);
  DryRun run(rank, transport, [](const Launch&) {});
  run.step();
  const std::vector<Span> spans = run.lanes().spans().back();
  int batches = 0;
  for (TaskId t = 1; t < rank.plan.task_count(); ++t) {
    if ((rank.plan.tasks[t].flags & kJoinsPrevious) == 0) continue;
    const Span &a = spans[t - 1], &b = spans[t];
    EXPECT_LE(std::max(a.entered, b.entered), std::min(a.ended, b.ended));
    ++batches;
  }
  EXPECT_GT(batches, 0);
}

TEST(HostLanes, TellTheWatcherOfEveryTask) {
  const Job job = tiny_job("data: 2, global_batch: 4");
  const Rank rank = job.rank(0);
  FakeTransport transport(1);
  std::vector<std::atomic<int>> entered(rank.plan.task_count()), left(rank.plan.task_count());
  DryRun run(
      rank, transport, [](const Launch&) {},
      [&](TaskId t, bool enters) {
        EXPECT_EQ(left[t], 0);
        ++(enters ? entered : left)[t];
      });
  run.step();
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    EXPECT_EQ(entered[t], 1);
    EXPECT_EQ(left[t], 1);
  }
}

// The error that the end of a step throws when a task fails.
std::string failure(const Rank& rank, FakeTransport& transport, const std::function<void(const Launch&)>& compute) {
  DryRun run(rank, transport, compute);
  try {
    run.step();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "none";
}

TEST(HostLanes, RethrowErrorsOfEitherThread) {
  const Job job = tiny_job("data: 2, global_batch: 4");
  const Rank rank = job.rank(0);
  FakeTransport fine(1), broken(1), broken_later(1);
  EXPECT_EQ(failure(rank, fine,
                    [&](const Launch& l) {
                      if (l.task == 7) throw Error("kernel 7 is broken");
                    }),
            "kernel 7 is broken");
  broken.fail_start = "no such communicator";
  EXPECT_EQ(failure(rank, broken, [](const Launch&) {}), "no such communicator");
  broken_later.fail_done = "the peer is gone";
  EXPECT_EQ(failure(rank, broken_later, [](const Launch&) {}), "the peer is gone");
}

// Lanes can be destroyed in the middle of a step: with a kernel running, and with a transfer that never ends.
TEST(HostLanes, EndWhileWorking) {
  const Job job = tiny_job("data: 2, global_batch: 4");
  const Rank rank = job.rank(0);
  for (const TaskId submitted : {1U, 5U, 40U, rank.plan.task_count()}) {
    FakeTransport transport(1);
    transport.never = true;
    DryRun run(rank, transport, [](const Launch&) { std::this_thread::sleep_for(std::chrono::microseconds(200)); });
    for (TaskId t = 0; t < submitted; ++t) run.submit(t);
    run.lanes().flush();
  }
}

}  // namespace
}  // namespace orrery
