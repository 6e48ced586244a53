#include "exec/memory/buffers.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using test::Job;
using test::Random;
using test::random_job;
using test::tiny_job;

struct Range {
  std::byte *begin, *end;
  bool overlaps(const Range& o) const { return begin < o.end && o.begin < end; }
};

// Issues a rank's tasks in order while lanes complete theirs at random (each lane in order, dependencies respected),
// and watches what a task of one lane gets that another lane may still use.
class IssueAtRandom {
 public:
  IssueAtRandom(const Rank& rank, std::uint64_t seed)
      : rank_(rank),
        random_(seed),
        memory_(host_segments()),
        buffers_(rank, memory_),
        done_(rank.plan.task_count()),
        after_(rank.plan.task_count()) {
    std::map<std::uint32_t, TaskId> last;
    for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
      const auto it = last.find(lane(t));
      previous_.push_back(it == last.end() ? kNone : it->second);
      last[lane(t)] = t;
    }
  }

  void run_step() {
    const Bytes before = memory_.use().allocated;
    std::fill(done_.begin(), done_.end(), false);
    running_.clear();
    for (TaskId t = 0; t < rank_.plan.task_count(); ++t) {
      const Launch launch = buffers_.issue(t, [&](TaskId d) { return done_[d]; });
      EXPECT_EQ(launch.task, t);
      check(launch);
      running_.push_back({t, ranges(launch)});
      after_[t] = launch.after;
      complete_some();
    }
    buffers_.end_step();
    EXPECT_TRUE(!lazy_appeared_ || memory_.use().allocated == before);
    lazy_appeared_ = true;
  }

 private:
  struct Running {
    TaskId task;
    std::vector<Range> uses;
  };

  static std::vector<Range> ranges(const Launch& launch) {
    std::vector<Range> uses;
    for (const Argument& a : launch.arguments) {
      if (a.data != nullptr && a.operand.scope != Scope::state) uses.push_back({a.data, a.data + a.bytes});
    }
    for (const auto& z : launch.zeroed) uses.push_back({z.data(), z.data() + z.size()});
    return uses;
  }

  std::uint32_t lane(TaskId t) const { return rank_.plan.tasks[t].lane; }

  // Whether `after` cannot start before `before` has ended: by its lane's order, its dependencies or Launch::after.
  bool ordered(TaskId before, const Launch& after) const {
    std::vector<bool> seen(rank_.plan.task_count());
    std::vector<TaskId> open(after.after);
    const auto push = [&](TaskId t) {
      for (const TaskId d : rank_.plan.dependencies_of(t)) open.push_back(d);
      if (previous_[t] != kNone) open.push_back(previous_[t]);
      open.insert(open.end(), after_[t].begin(), after_[t].end());
    };
    for (const TaskId d : rank_.plan.dependencies_of(after.task)) open.push_back(d);
    if (previous_[after.task] != kNone) open.push_back(previous_[after.task]);
    while (!open.empty()) {
      const TaskId t = open.back();
      open.pop_back();
      if (t == before) return true;
      if (t < before || done_[t] || seen[t]) continue;
      seen[t] = true;
      push(t);
    }
    return false;
  }

  // Checks that freshly taken memory is not in use by a task that may still run beside this one.
  void check(const Launch& launch) {
    const Op& op = rank_.plan.op_of(launch.task);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& o = op.operands[i];
      const Argument& a = launch.arguments[i];
      const auto same = [&](const Operand& x) { return x.scope == o.scope && x.slot == o.slot; };
      if (a.data == nullptr || std::none_of(op.allocates.begin(), op.allocates.end(), same)) continue;
      const Range fresh = {a.data, a.data + std::max<Bytes>(a.bytes, 1)};
      for (const Running& r : running_) {
        for (const Range& used : r.uses) {
          if (!used.overlaps(fresh)) continue;
          EXPECT_TRUE(ordered(r.task, launch)) << op.name << " (" << launch.task << ") takes memory of "
                                               << rank_.plan.op_of(r.task).name << " (" << r.task << ")";
        }
      }
    }
  }

  bool may_end(const Running& r) const {
    const auto waits = [&](TaskId t) { return !done_[t]; };
    const auto needs = rank_.plan.dependencies_of(r.task);
    const auto earlier = [&](const Running& o) { return o.task < r.task && lane(o.task) == lane(r.task); };
    return std::none_of(needs.begin(), needs.end(), waits) &&
           std::none_of(after_[r.task].begin(), after_[r.task].end(), waits) &&
           std::none_of(running_.begin(), running_.end(), earlier);
  }

  void complete_some() {
    for (std::size_t tries = random_.next() % 4; tries-- > 0 && !running_.empty();) {
      const std::size_t i = random_.next() % running_.size();
      if (!may_end(running_[i])) continue;
      done_[running_[i].task] = true;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  const Rank& rank_;
  Random random_;
  CachingMemory memory_;
  Buffers buffers_;
  std::vector<bool> done_;
  std::vector<std::vector<TaskId>> after_;  // by task: what Launch::after said
  std::vector<TaskId> previous_;            // by task: the one before on its lane
  std::vector<Running> running_;
  bool lazy_appeared_ = false;
};

TEST(Buffers, NothingIsTakenThatMayStillBeInUse) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto job = random_job(seed);
    if (job == nullptr) continue;
    const Rank rank = job->rank(static_cast<std::int64_t>(seed) % job->plan.ranks);
    if (rank.plan.task_count() > 300) continue;
    SCOPED_TRACE(seed);
    IssueAtRandom issue(rank, seed);
    for (int step = 0; step < 2; ++step) issue.run_step();
    ++tried;
  }
  EXPECT_GT(tried, 10);
}

// Optimizer moments are allocated at the first update and stay; all other memory of a step is freed.
TEST(Buffers, AStepLeavesWhatItFound) {
  for (const char* sharding : {"none", "zero1", "zero2", "zero3", "fsdp"}) {
    SCOPED_TRACE(sharding);
    const Job job = tiny_job(fmt::format("data: 2, global_batch: 4, sharding: {}", sharding));
    const Rank rank = job.rank(0);
    CachingMemory memory(host_segments());
    Buffers buffers(rank, memory);
    const Bytes at_first = memory.use().allocated;
    std::vector<Bytes> after;
    for (int step = 0; step < 3; ++step) {
      for (TaskId t = 0; t < rank.plan.task_count(); ++t) buffers.issue(t, [](TaskId) { return true; });
      buffers.end_step();
      after.push_back(memory.use().allocated);
    }
    const Bytes moment = rank.plan.blocks[rank.plan.frames[rank.states[0]].block].buffers[kMoment1].bytes;
    EXPECT_EQ(after[0], at_first + 2 * ceil_div(moment, 512) * 512);
    EXPECT_EQ(after[1], after[0]);
    EXPECT_EQ(after[2], after[0]);
    EXPECT_GE(memory.use().peak_allocated, after[0]);
    Bytes sum = 0;
    for (const Bytes b : buffers.at_peak()) sum += b;
    EXPECT_EQ(sum, memory.use().peak_allocated);
    EXPECT_LT(buffers.peak_task(), rank.plan.task_count());
  }
}

// Weights and states begin as zeros; buffers for sums and moments must be cleared as a whole by their first task.
TEST(Buffers, SumsBeginAtZero) {
  const Job job = tiny_job("data: 2, global_batch: 4, sharding: fsdp");
  const Rank rank = job.rank(1);
  CachingMemory memory(host_segments());
  Buffers buffers(rank, memory);
  const Block& state = rank.plan.blocks[rank.plan.frames[rank.states[0]].block];
  for (std::uint16_t s = 0; s < kStateSlots; ++s) {
    const std::byte* at = buffers.state(rank.states[0], s);
    EXPECT_EQ(at != nullptr, state.buffers[s].bytes > 0 && !state.buffers[s].lazy) << state.buffers[s].name;
    for (Bytes i = 0; at != nullptr && i < state.buffers[s].bytes; ++i) ASSERT_EQ(at[i], std::byte{0});
  }
  std::set<std::pair<std::uint32_t, std::uint16_t>> held;
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    const Launch launch = buffers.issue(t, [](TaskId) { return true; });
    const auto frame = [&](const Operand& o) { return frame_of(rank.plan, rank.plan.tasks[t].frame, o); };
    std::vector<Bytes> expected, zeroed;
    for (const Operand& o : rank.plan.op_of(t).allocates) {
      const BlockBuffer& slot = rank.plan.blocks[rank.plan.frames[frame(o)].block].buffers[o.slot];
      const bool sum = slot.lazy || (o.scope == Scope::unit && o.slot == kUnitGradient);
      if (held.insert({frame(o), o.slot}).second && slot.bytes > 0 && sum) expected.push_back(slot.bytes);
    }
    for (const Operand& o : rank.plan.op_of(t).frees) held.erase({frame(o), o.slot});
    for (const auto& z : launch.zeroed) zeroed.push_back(static_cast<Bytes>(z.size()));
    EXPECT_EQ(zeroed, expected) << rank.plan.op_of(t).name;
  }
}

// The memory of a sent buffer is reused only after the message has arrived.
TEST(Buffers, WhatIsSentStaysUntilItHasArrived) {
  const Job job = tiny_job("pipeline: 2, global_batch: 4");
  const Rank rank = job.rank(0);
  CachingMemory memory(host_segments());
  Buffers buffers(rank, memory);
  std::map<TaskId, Range> sent;
  std::set<TaskId> arrived;
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) {
    const Launch launch = buffers.issue(t, [&](TaskId d) { return arrived.contains(d); });
    for (const Argument& a : launch.arguments) {
      if (a.data == nullptr) continue;
      for (const auto& [task, range] : sent) {
        EXPECT_FALSE(range.overlaps({a.data, a.data + std::max<Bytes>(a.bytes, 1)}))
            << rank.plan.op_of(t).name << " touches what " << rank.plan.op_of(task).name << " sends";
      }
    }
    const auto* transfer = std::get_if<Transfer>(&rank.plan.op_of(t).work);
    if (transfer != nullptr && transfer->send) {
      const Argument& a = launch.arguments.front();
      sent[t] = {a.data, a.data + a.bytes};
    }
    if (t % 7 != 0) continue;  // every seventh task waits for all copies that are under way
    for (const auto& [task, range] : sent) arrived.insert(task);
    sent.clear();
  }
}

}  // namespace
}  // namespace orrery
