#include "sim/whatif/divergence.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/whatif/run_events.h"

namespace orrery {
namespace {

// Two ranks that run ten kernels of 1 ms in each of two steps.
class TwoRanks {
 public:
  double slow = 1;  // factor of the duration of `slow_kernel` in step 1 of rank 1
  double late = 0;  // seconds by which `slow_kernel` begins later
  int slow_kernel = 4;
  bool second_runs_more = false;  // whether rank 1 runs another kernel at the end of step 1

  MeasuredRun run() const {
    KernelRun kernels;
    for (const char* rank : {"0", "1"}) {
      double at = 0;
      for (int step = 0; step < 2; ++step) {
        for (int k = 0; k < 10; ++k) {
          const bool here = *rank == '1' && step == 1 && k == slow_kernel;
          at += here ? late : 0;
          const double time = here ? 1e-3 * slow : 1e-3;
          kernels.add({.worker = rank,
                       .lane = " 7",
                       .name = fmt::format("gemm_{}", k % 3),
                       .step = step,
                       .begin = at,
                       .time = time});
          at += time;
        }
        if (second_runs_more && *rank == '1' && step == 1)
          kernels.add({.worker = rank, .lane = " 7", .name = "more", .step = step, .begin = at, .time = 1e-6});
        at += 1e-3;
      }
    }
    return kernels.take();
  }
};

std::optional<Divergence> found(const TwoRanks& ranks) { return first_divergence(ranks.run(), "0", "1", 1e-4); }

TEST(Divergence, LikeRanksStayTogether) { EXPECT_FALSE(found({})); }

TEST(Divergence, TheFirstSlowKernelIsFound) {
  TwoRanks ranks;
  ranks.slow = 1.5;
  const auto d = found(ranks);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->how, Divergence::How::takes);
  EXPECT_EQ(d->behind, "1");
  EXPECT_EQ(d->step, 1);
  EXPECT_EQ(d->number, 5);
  EXPECT_EQ(d->op, "number 2 of gemm_1");
  EXPECT_NEAR(d->later, 0.5e-3, 1e-9);
  EXPECT_NEAR(d->begin_first, 4e-3, 1e-9);
  EXPECT_NEAR(d->time_second, 1.5e-3, 1e-9);
}

TEST(Divergence, AKernelThatWasLaunchedLateBeginsLater) {
  TwoRanks ranks;
  ranks.late = 2e-3;
  const auto d = found(ranks);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->how, Divergence::How::begins);
  EXPECT_NEAR(d->begin_second - d->begin_first, 2e-3, 1e-9);
}

TEST(Divergence, AnOperationOfOneRankAloneIsFound) {
  TwoRanks ranks;
  ranks.second_runs_more = true;
  const auto d = found(ranks);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->how, Divergence::How::runs);
  EXPECT_EQ(d->op, "number 1 of more");
  EXPECT_EQ(d->behind, "1");
}

TEST(Divergence, RanksMustShareAStep) {
  KernelRun kernels;
  for (const int rank : {0, 1})
    kernels.add({.worker = std::to_string(rank),
                 .lane = " 7",
                 .name = "gemm",
                 .step = rank,
                 .begin = 0.01 * rank,
                 .time = 1e-3});
  EXPECT_THROW(first_divergence(kernels.take(), "0", "1", 1e-4), Error);
}

TEST(Divergence, RanksMustBeThere) { EXPECT_THROW(first_divergence(TwoRanks{}.run(), "0", "7", 1e-4), Error); }

}  // namespace
}  // namespace orrery
