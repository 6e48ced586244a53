// How often the host waits for the clocks of host and device to be compared, and which marks have times.
#include <gtest/gtest.h>

#include "exec/cuda/queue.h"
#include "exec/host/lanes.h"
#include "tests/exec/cuda/null_gpu/null_gpu.h"

namespace orrery {
namespace {

constexpr TaskId kTasks = 3;

struct Marked {
  std::vector<std::vector<Picoseconds>> ends;
  std::int64_t waits = 0, timed = 0;
  Picoseconds before = 0, after = 0;
};

Marked mark(std::int64_t steps, std::int64_t every) {
  Marked result;
  cuda::Stream stream;
  null_gpu::begin();
  result.before = host_now();
  cuda::Marks marks(kTasks, steps, every);
  for (std::int64_t step = 0; step < steps; ++step) {
    marks.begin_step(stream.get());
    for (TaskId t = 0; t < kTasks; ++t) ORRERY_CHECK_CUDA(cudaEventRecord(marks.of(t), stream.get()));
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(stream.get()));
  }
  result.waits = null_gpu::calls()["cudaEventSynchronize"];
  result.ends = marks.ends();
  result.timed = null_gpu::calls()["cudaEventElapsedTime"];
  result.after = host_now();
  return result;
}

// Before the first step, however many steps there are.
TEST(Marks, ComparesTheClocksOnceARun) {
  EXPECT_EQ(mark(1, 1).waits, 5);
  EXPECT_EQ(mark(40, 1).waits, 5);
}

TEST(Marks, EndsFollowEachOtherOnTheHostsClock) {
  const Marked m = mark(40, 1);
  ASSERT_EQ(m.ends.size(), 40U);
  Picoseconds last = m.before;
  for (const auto& step : m.ends) {
    ASSERT_EQ(step.size(), kTasks);
    for (const Picoseconds end : step) {
      EXPECT_GE(end, last);
      last = end;
    }
  }
  EXPECT_LT(last, m.after);
}

TEST(Marks, OnlyEachThirdStepHasTimes) {
  const Marked m = mark(8, 3);
  ASSERT_EQ(m.ends.size(), 8U);
  for (std::size_t step = 0; step < 8; ++step) EXPECT_EQ(m.ends[step].size(), step % 3 == 0 ? kTasks : 0U) << step;
  // the begin of each step, three ends of three steps, and the last comparison
  EXPECT_EQ(m.timed, 8 + 9 + 1);
}

// A run of more steps than there are sets of events reads sets between steps.
TEST(Marks, ReadsSetsThatAreUsedAgain) {
  constexpr TaskId kMany = 1 << 17;
  cuda::Stream stream;
  cuda::Marks marks(kMany, 5, 1);
  for (int step = 0; step < 5; ++step) {
    marks.begin_step(stream.get());
    for (TaskId t = 0; t < kMany; ++t) ORRERY_CHECK_CUDA(cudaEventRecord(marks.of(t), stream.get()));
    ORRERY_CHECK_CUDA(cudaStreamSynchronize(stream.get()));
  }
  const auto ends = marks.ends();
  ASSERT_EQ(ends.size(), 5U);
  for (std::size_t step = 0; step < 5; ++step) {
    ASSERT_EQ(ends[step].size(), kMany);
    EXPECT_LT(ends[step].front(), ends[step].back());
    if (step == 0) continue;
    EXPECT_LT(ends[step - 1].back(), ends[step].front());
  }
}

}  // namespace
}  // namespace orrery
