#include "models/run/progress_ring.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

const test::TemporaryFolder kFolder;
const std::string kFile = kFolder.path("progress_ring");

class ProgressRingTest : public testing::Test {
  void TearDown() override { std::filesystem::remove(kFile); }
};

TEST_F(ProgressRingTest, IsNotThereBeforeItIsMade) { EXPECT_FALSE(read_progress(kFile).has_value()); }

TEST_F(ProgressRingTest, RemembersTheLastEventsOfEveryLane) {
  ProgressRing ring(kFile, 5, "0123456789abcdef");
  auto p = *read_progress(kFile);
  EXPECT_EQ(p.rank, 5);
  EXPECT_EQ(p.pid, ::getpid());
  EXPECT_EQ(p.plan_hash, "0123456789abcdef");
  EXPECT_EQ(p.events, 0U);
  EXPECT_EQ(p.lanes[0].task, kNone);
  ring.enter(LaneKind::tensor, 2, 99);  // stays open while another lane goes round its ring
  for (TaskId t = 0; t < 100; ++t) {
    ring.enter(LaneKind::compute, 3, t);
    ring.leave(LaneKind::compute, 3, t);
  }
  p = *read_progress(kFile);
  EXPECT_EQ(p.events, 201U);
  const ProgressEvent& tensor = p.lanes[static_cast<std::size_t>(LaneKind::tensor)];
  EXPECT_EQ(tensor.task, 99U);
  EXPECT_EQ(tensor.step, 2U);
  EXPECT_TRUE(tensor.open);
  EXPECT_EQ(p.lanes[0].task, 99U);
  EXPECT_EQ(p.lanes[0].step, 3U);
  EXPECT_FALSE(p.lanes[0].open);
  ASSERT_EQ(p.recent[0].size(), kRecentEvents);
  EXPECT_EQ(p.recent[0].front().task, 96U);
  EXPECT_LE(p.recent[0].front().time_ns, p.lanes[0].time_ns);
}

TEST_F(ProgressRingTest, SaysHowTheRankEnded) {
  ProgressRing ring(kFile, 0, "");
  EXPECT_EQ(read_progress(kFile)->state, RankState::working);
  ring.fail(3, std::string(5000, 'x'));
  EXPECT_EQ(read_progress(kFile)->state, RankState::failed);
  EXPECT_EQ(read_progress(kFile)->exit_code, 3);
  EXPECT_EQ(read_progress(kFile)->line, std::string(1023, 'x'));
  ring.finish();
  EXPECT_EQ(read_progress(kFile)->state, RankState::finished);
}

TEST_F(ProgressRingTest, OutlivesAKill) {
  const pid_t child = ::fork();
  if (child == 0) {
    ProgressRing ring(kFile, 1, "hash");
    ring.enter(LaneKind::h2d, 7, 42);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const auto p = read_progress(kFile);
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->pid, child);
  EXPECT_EQ(p->lanes[static_cast<std::size_t>(LaneKind::h2d)].task, 42U);
}

// Readers see whole events in order, however fast two lanes write.
TEST_F(ProgressRingTest, IsReadWhileItIsWritten) {
  ProgressRing ring(kFile, 0, "");
  std::atomic<bool> ending = false;
  const auto write = [&](LaneKind lane) {
    for (TaskId t = 0; !ending; ++t) ring.enter(lane, t / 2, t);
  };
  std::thread a(write, LaneKind::compute), b(write, LaneKind::tensor);
  std::uint64_t events = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto p = read_progress(kFile);
    EXPECT_GE(p->events, events);
    events = p->events;
    for (const std::size_t lane : {0U, 1U}) {
      const auto& recent = p->recent[lane];
      for (std::size_t k = 0; k < recent.size(); ++k) {
        EXPECT_EQ(recent[k].task, recent[0].task + k);
        EXPECT_EQ(recent[k].step, recent[k].task / 2);
      }
    }
  }
  ending = true;
  a.join();
  b.join();
}

TEST_F(ProgressRingTest, RefusesAnythingElse) {
  std::ofstream(kFile) << "something else";
  EXPECT_THROW(read_progress(kFile), Error);
  { ProgressRing ring(kFile, 0, ""); }
  std::fstream(kFile, std::ios::in | std::ios::out) << "X";
  EXPECT_THROW(read_progress(kFile), Error);
  EXPECT_THROW(ProgressRing("/nowhere/ring", 0, ""), Error);
}

}  // namespace
}  // namespace orrery
