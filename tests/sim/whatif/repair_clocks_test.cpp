#include <gtest/gtest.h>

#include "sim/whatif/run_rows.h"
#include "sim/whatif/whatif.h"
#include "tests/sim/whatif/pipeline_log.h"

namespace orrery {
namespace {

// Collectives end at one time on all their ranks, which tells by how much a rank's clock is ahead.
TEST(RepairClocks, AClockThatIsAheadIsSetBack) {
  test::PipelineLog log{.ranks = 3, .slow_rank = 1, .slow_stage = 2};
  RunRows good;
  read_run_csv("log.csv", log.csv(), good);
  const WhatifAnswer expected = answer(good.take(), {});
  EXPECT_LT(expected.clock_shift, 1e-9);
  log.clocks = {0, 0.4, -2};
  RunRows rows;
  read_run_csv("log.csv", log.csv(), rows);
  const WhatifAnswer a = answer(rows.take(), {});
  EXPECT_NEAR(a.clock_shift, 2, 1e-9);
  EXPECT_NEAR(a.measured, expected.measured, 1e-9);
  EXPECT_NEAR(a.even, expected.even, 1e-9);
  EXPECT_NEAR(a.by_worker.front().slowdown, expected.by_worker.front().slowdown, 1e-9);
}

}  // namespace
}  // namespace orrery
