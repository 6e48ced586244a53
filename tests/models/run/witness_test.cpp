#include "models/run/witness.h"

#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "models/run/rank_end.h"
#include "models/spec/spec.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const Plan& plan() {
  static const Plan p = unfold(
      make_plan(parse_spec("model: {layers: 2, hidden: 64, heads: 4, feed_forward: 256, vocab: 512}\nsequence: "
                           "64\ncluster: {node: localhost}\n"
                           "gpus: 4\nstrategy: {tensor: 2, pipeline: 2, global_batch: 2, sequence_parallel: false}\n",
                           "spec.yaml")));
  return p;
}

// The n-th transfer of a rank, by its number within the rank.
TaskId transfer(std::int64_t rank, Dimension group, int n) {
  const RankClass& slot = plan().classes[rank];
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    const auto* c = std::get_if<Collective>(&plan().op_of(t).work);
    const bool one = group == Dimension::pipeline ? std::holds_alternative<Transfer>(plan().op_of(t).work)
                                                  : c != nullptr && c->group == group;
    if (one && plan().tasks[t].match != kNone && n-- == 0) return t - slot.begin;
  }
  return kNone;
}

class Scenes : public testing::Test {
 protected:
  Scenes() {
    for (std::int64_t r = 0; r < 4; ++r) {
      Witness& w = ranks_.emplace_back();
      w.progress = RankProgress{.rank = r, .pid = 100 + r};
      w.progress->lanes.resize(kLanes);
      w.moved = 10;
    }
  }
  void note(std::int64_t rank, std::uint32_t step, TaskId task, bool open) {
    const std::uint32_t lane = plan().tasks[plan().classes[rank].begin + task].lane % kLanes;
    ranks_[rank].progress->lanes[lane] = {step, task, open, ++time_};
    ++ranks_[rank].progress->events;
  }
  std::optional<Fault> find(Seconds now, const Patience& patience = {.hang = 2}) const {
    return find_fault(plan(), ranks_, 5, patience, now);
  }

  std::vector<Witness> ranks_;
  std::int64_t time_ = 0;
};

TEST_F(Scenes, NothingIsWrongWhileEverybodyMoves) {
  for (std::int64_t r = 0; r < 4; ++r) note(r, 0, 0, true);
  EXPECT_FALSE(find(11.9).has_value());
}

TEST_F(Scenes, AFailureComesBeforeADeath) {
  ranks_[0].gone = true;
  ranks_[3].progress->state = RankState::failed;
  ranks_[3].progress->exit_code = 1;
  ranks_[3].progress->line = "no memory";
  EXPECT_EQ(find(10)->line, "rank 3: no memory");
  EXPECT_EQ(find(10)->exit_code, 1);
}

// A lost server is tolerated as long as its chain has another, and every rank has begun.
TEST(LostReplica, IsSparedWhileItsChainGoesOn) {
  const Plan servers = unfold(make_plan(
      parse_spec("model: {layers: 2, hidden: 64, heads: 4, feed_forward: 256, vocab: 512}\nsequence: 64\n"
                 "cluster: {node: localhost}\ngpus: 2\nstrategy: {data: 2, global_batch: 2, clip: 0, sharding: "
                 "parameter-server, parameter_server: {servers: 2, replicas: 2}}\n",
                 "spec.yaml")));
  std::vector<Witness> ranks(6);
  for (Witness& w : ranks) {
    w.progress = RankProgress{};
    w.progress->lanes.resize(kLanes);
  }
  ranks[3].gone = true;
  EXPECT_FALSE(lost_replica(servers, ranks));  // a rank may still be about to reach the point where it needs the server
  for (Witness& w : ranks) w.progress->lanes[0] = {0, 0, true, 1};
  EXPECT_EQ(lost_replica(servers, ranks), 3);
  ranks[3].spared = true;
  EXPECT_FALSE(lost_replica(servers, ranks));
  EXPECT_FALSE(find_fault(servers, ranks, 5, {.hang = 2}, 1).has_value());
  ranks[4].gone = true;  // a server of the other chain
  EXPECT_EQ(lost_replica(servers, ranks), 4);
  ranks[5].gone = true;  // the remaining server of the first chain
  ranks[4].gone = false;
  EXPECT_FALSE(lost_replica(servers, ranks));
  EXPECT_EQ(find_fault(servers, ranks, 5, {.hang = 2}, 1)->rank, 5);
  ranks[5].gone = false;
  ranks[0].gone = true;  // a worker
  EXPECT_EQ(find_fault(servers, ranks, 5, {.hang = 2}, 1)->rank, 0);
}

TEST_F(Scenes, AnEndedProcessIsLostUnlessItHasFinished) {
  ranks_[2].gone = true;
  ranks_[2].progress->state = RankState::finished;
  EXPECT_FALSE(find(10).has_value());
  ranks_[2].progress->state = RankState::working;
  EXPECT_EQ(find(10)->rank, 2);
  EXPECT_EQ(find(10)->line, "rank 2 was lost (process 102 has ended) before its first task");
}

TEST_F(Scenes, NamesWhoIsMissingInTheCollective) {
  const TaskId meet = transfer(0, Dimension::tensor, 2);
  note(0, 1, meet, true);
  note(1, 1, meet - 1, true);  // computes
  const auto fault = find(12.5);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->rank, 1);
  EXPECT_EQ(fault->exit_code, kRankLost);
  EXPECT_TRUE(fault->line.starts_with("rank 1 stands still for 2.5 s (process 101) in step 2 of 5, in "))
      << fault->line;
  EXPECT_NE(fault->line.find("of tensor group 0 1 ("), std::string::npos) << fault->line;
  EXPECT_TRUE(fault->line.ends_with(": entered by rank 0; not by rank 1")) << fault->line;
}

// Waits are followed from the second stage to the first, whose rank 1 computes for ever.
TEST_F(Scenes, FollowsTheChainOfWaiting) {
  note(1, 0, 0, true);
  note(0, 0, transfer(0, Dimension::tensor, 0), true);
  for (const std::int64_t r : {2, 3}) note(r, 0, transfer(r, Dimension::pipeline, 0), true);
  EXPECT_EQ(find(12.5)->rank, 1);
  ranks_[1].moved = 12;  // rank 1 still makes progress
  EXPECT_FALSE(find(12.5).has_value());
}

TEST_F(Scenes, AStoppedProcessExplainsTheOthers) {
  const TaskId meet = transfer(2, Dimension::tensor, 0);
  for (const std::int64_t r : {2, 3}) note(r, 0, meet, true);
  ranks_[3].stopped = true;
  const auto fault = find(13);
  EXPECT_EQ(fault->rank, 3);
  EXPECT_NE(fault->line.find("(process 103, stopped)"), std::string::npos) << fault->line;
  EXPECT_TRUE(fault->line.ends_with("entered by ranks 2 3, all of them")) << fault->line;
}

TEST_F(Scenes, LongOpsAndQuietPhasesGetMoreTime) {
  note(0, 0, 0, true);
  for (const std::int64_t r : {1, 2, 3}) ranks_[r].progress->state = RankState::finished;
  Patience patience{.hang = 2};
  patience.predicted.resize(plan().ops.size(), 0.5);
  EXPECT_TRUE(find(14).has_value());
  EXPECT_FALSE(find(14, patience).has_value());
  EXPECT_TRUE(find(15.1, patience).has_value());
  note(0, 0, 0, false);  // between the tasks of a step
  EXPECT_TRUE(find(13).has_value());
  note(0, 4, 0, false);  // after its last: it writes its results
  EXPECT_FALSE(find(609).has_value());
  EXPECT_TRUE(find(611).has_value());
}

TEST_F(Scenes, ARankThatHasNotBegunIsMissing) {
  ranks_[1].progress.reset();
  note(0, 0, transfer(0, Dimension::tensor, 0), true);
  EXPECT_FALSE(find(609).has_value());
  const auto fault = find(611);
  EXPECT_EQ(fault->rank, 1);
  EXPECT_NE(fault->line.find("it has not started"), std::string::npos) << fault->line;
}

TEST(Witnesses, SeesProgressAndItsOwnProcess) {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path() + "/";
  Witnesses witnesses(folder, 1, true, 0);
  witnesses.look(1);
  EXPECT_FALSE(witnesses.ranks()[0].progress.has_value());
  EXPECT_EQ(witnesses.ranks()[0].moved, 0);
  ProgressRing ring(progress_file(folder, 0), 0, "");
  witnesses.look(2);
  EXPECT_EQ(witnesses.ranks()[0].moved, 2);
  ring.enter(LaneKind::compute, 4, 0);
  witnesses.look(3);
  witnesses.look(4);
  EXPECT_EQ(witnesses.ranks()[0].moved, 3);
  EXPECT_FALSE(witnesses.ranks()[0].gone);
  EXPECT_EQ(witnesses.step(), 4U);
  EXPECT_FALSE(witnesses.all_finished());
  ring.finish();
  witnesses.look(5);
  EXPECT_TRUE(witnesses.all_finished());
  ::remove(progress_file(folder, 0).c_str());
}

// Before their first entry in the progress file, ranks are known by their processes.
TEST(Witnesses, SeeRanksBeforeTheirFirstWord) {
  const test::TemporaryFolder folder;
  const pid_t self = ::getpid();
  RankProcesses processes;
  Witnesses witnesses(folder.path(), 3, true, 0, [&] { return processes; });
  witnesses.look(1);  // no process has started yet
  for (const Witness& w : witnesses.ranks()) EXPECT_FALSE(w.gone);
  processes = {{0, {self}}, {2, {1, self}}};
  witnesses.look(2);
  EXPECT_EQ(witnesses.ranks()[2].pid, self);
  EXPECT_FALSE(witnesses.ranks()[1].gone);  // the process may be about to start
  processes.erase(2);
  witnesses.look(3);
  EXPECT_TRUE(witnesses.ranks()[2].gone);
  EXPECT_FALSE(witnesses.ranks()[0].gone);
  witnesses.look(5.5);  // the processes of other ranks were there more than three seconds ago
  EXPECT_TRUE(witnesses.ranks()[1].gone);
}

TEST(Witnesses, ReadHowARankHasEnded) {
  const test::TemporaryFolder folder;
  RankEndFile end(ended_file(folder.path(), 0));
  Witnesses witnesses(folder.path(), 1, true, 0);
  end.started(4711);
  witnesses.look(1);
  EXPECT_FALSE(witnesses.ranks()[0].gone);
  end.ended(SIGSEGV);
  witnesses.look(2);
  EXPECT_TRUE(witnesses.ranks()[0].gone);
  EXPECT_EQ(witnesses.ranks()[0].pid, 4711);
  EXPECT_EQ(witnesses.ranks()[0].end, SIGSEGV);
}

TEST_F(Scenes, ARankThatEndsBeforeItsFirstWordIsLost) {
  ranks_[1].progress.reset();
  ranks_[1].gone = true;
  auto fault = find(10.1);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->line, "rank 1 was lost (it has no process) before its first task");
  ranks_[1].pid = 4711;
  ranks_[1].end = 127 << 8;
  fault = find(10.1);
  EXPECT_EQ(fault->line,
            "rank 1 was lost (process 4711 has ended) before its first task; it ended with status 127 (a program or "
            "library is missing)");
  EXPECT_EQ(fault->exit_code, kRankLost);
}

// A stopped rank is reported after a pause of three seconds, whatever the timeout for ops.
TEST_F(Scenes, AStoppedRankIsNamedSoon) {
  const Patience patience{.hang = 600};
  ranks_[2].stopped = true;
  ranks_[2].stopped_at = 100;
  EXPECT_FALSE(find(102.9, patience).has_value());
  const auto fault = find(103.1, patience);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->rank, 2);
  EXPECT_NE(fault->line.find("(process 102, stopped)"), std::string::npos) << fault->line;
}

}  // namespace
}  // namespace orrery
