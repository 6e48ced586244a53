#include "sim/whatif/whatif.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "sim/whatif/run_rows.h"
#include "tests/sim/whatif/pipeline_log.h"

namespace orrery {
namespace {

MeasuredRun run_of(test::PipelineLog& log) {
  RunRows rows;
  read_run_csv("log.csv", log.csv(), rows);
  return rows.take();
}

double slowdown_of(const std::vector<Slowdown>& list, const std::string& name) {
  for (const Slowdown& s : list) {
    if (s.name == name) return s.slowdown;
  }
  throw Error("no slowdown of " + name);
}

TEST(Whatif, AnEvenRunIsItsReplay) {
  test::PipelineLog log;
  const WhatifAnswer a = answer(run_of(log), {});
  EXPECT_NEAR(a.measured, log.step_time, 1e-9);
  EXPECT_NEAR(a.without_gaps, log.step_time, 1e-9);
  EXPECT_NEAR(a.even, log.step_time, 1e-9);
  EXPECT_NEAR(a.replay_error, 0, 1e-9);
  for (const auto* list : {&a.by_op, &a.by_worker, &a.by_stage}) {
    for (const Slowdown& s : *list) EXPECT_NEAR(s.slowdown, 1, 1e-9) << s.name;
  }
}

// Forwards, and backwards, take once through all stages, and (m - 1) times the slowest stage with what it receives.
TEST(Whatif, ASlowStageOfOneRankIsFound) {
  test::PipelineLog log{.slow_rank = 1, .slow_stage = 2};
  const WhatifAnswer a = answer(run_of(log), {});
  const double forward = 2 * 1.25 + 1.5 + 3 * 1.75, backward = 3 * 3 + 3 + 2 * 2.25;
  EXPECT_NEAR(log.step_time, forward + backward + 0.625, 1e-9);
  EXPECT_NEAR(a.measured, log.step_time, 1e-9);
  EXPECT_NEAR(a.without_gaps, log.step_time, 1e-9);
  // Forwards and backwards of 2 ranks and 3 stages take 1 + 0.5 / 6 times as long in the mean.
  const double mean = 1 + 0.5 / 6;
  const double even = (3 + 3) * mean + 5 * 0.25 + (6 + 6) * mean + 5 * 0.25 + 0.625;
  EXPECT_NEAR(a.even, even, 1e-9);
  EXPECT_EQ(a.by_worker.front().name, "1");
  EXPECT_EQ(a.by_stage.front().name, "2");
  EXPECT_LT(slowdown_of(a.by_worker, "0"), 1.001);
  EXPECT_NEAR(a.by_stage.front().slowdown, a.by_worker.front().slowdown, 0.1);
  EXPECT_GT(a.by_stage.front().slowdown, 1.1);
  EXPECT_GT(slowdown_of(a.by_op, "backward-compute"), slowdown_of(a.by_op, "forward-compute"));
  EXPECT_NEAR(a.work[1][2], 1.5 / mean, 0.01);
  EXPECT_NEAR(a.work[0][0], 1 / mean, 0.01);
}

TEST(Whatif, QuestionsChangeTheStep) {
  test::PipelineLog log{.slow_rank = 1, .slow_stage = 2};
  const auto asked = [&](const WhatifQuestion& q) { return answer(run_of(log), q).asked; };
  const double step = asked({});
  EXPECT_NEAR(step, log.step_time, 1e-9);
  // On the way to the slow stage and back lie four transfers, three more before its forwards, and the reduction.
  EXPECT_NEAR(asked({.network = 2}), step - (7 * 0.25 + 0.5) / 2, 1e-9);
  EXPECT_NEAR(asked({.without_op = "optimizer"}), step - 0.125, 1e-9);
  EXPECT_LT(asked({.without_rank = "1"}), 0.92 * step);
  EXPECT_LT(asked({.without_stage = 2}), 0.92 * step);
  EXPECT_LT(asked({.even_stages = true}), step);
  EXPECT_LT(asked({.compute = 2}), 0.6 * step);
  EXPECT_THROW(asked({.without_rank = "7"}), Error);
  EXPECT_THROW(asked({.without_stage = 3}), Error);
  EXPECT_THROW(asked({.without_op = "gc"}), Error);
}

// A stage that is slow on every rank takes its mean over stages with `--without stage` as with `--even-stages`.
TEST(Whatif, AnEvenStageIsNotEvenedTwice) {
  test::PipelineLog log{.ranks = 1, .slow_rank = 0, .slow_stage = 2};
  const auto asked = [&](const WhatifQuestion& q) { return answer(run_of(log), q).asked; };
  const double even = asked({.even_stages = true});
  EXPECT_NEAR(asked({.without_stage = 2, .even_stages = true}), even, 1e-9);
  EXPECT_NEAR(asked({.without_rank = "0", .even_stages = true}), even, 1e-9);
}

MeasuredRun run_of_rows(const std::string& rows) {
  RunRows read;
  read_run_csv("log.csv", "rank,step,op,start_s,duration_s\n" + rows, read);
  return read.take();
}

TEST(Whatif, RunsThatTakeNoTimeAreErrors) {
  EXPECT_THROW(answer({}, {}), Error);
  EXPECT_THROW(answer(run_of_rows("0,0,gemm,5,0\n"), {}), Error);
  EXPECT_THROW(answer(run_of_rows("0,0,gemm,0,1\n0,1,gemm,5,0\n"), {}), Error);
  EXPECT_THROW(answer(run_of_rows("0,0,gemm,5,0\n0,0,gemm,6,0\n"), {}), Error);
  // all transfers but one take no time, so that an even step has none
  EXPECT_THROW(answer(run_of_rows("0,0,x-all-reduce,0,1\n0,0,x-all-reduce,1,0\n0,0,x-all-reduce,1,0\n"), {}), Error);
}

TEST(Whatif, SlowdownsAreOfTheLongestOps) {
  std::string rows;
  for (int i = 0; i < 60; ++i) rows += fmt::format("0,0,op {},{},{}\n", i, 100 * i, i + 1);
  const WhatifAnswer a = answer(run_of_rows(rows), {});
  EXPECT_EQ(a.by_op.size(), 50U);
  EXPECT_NO_THROW(slowdown_of(a.by_op, "op 10"));
  EXPECT_THROW(slowdown_of(a.by_op, "op 9"), Error);
}

TEST(Whatif, WorkersAreInTheOrderOfTheirNumbers) {
  const WhatifAnswer a = answer(run_of_rows("10,0,gemm,0,3\n9,0,gemm,0,1\n2,0,gemm,0,2\n"), {.without_rank = "10"});
  EXPECT_EQ(a.workers, (std::vector<std::string>{"2", "9", "10"}));
  EXPECT_NEAR(a.work[0][0], 1, 1e-9);
  EXPECT_NEAR(a.work[1][0], 0.5, 1e-9);
  EXPECT_NEAR(a.work[2][0], 1.5, 1e-9);
  EXPECT_NEAR(a.asked, 2, 1e-9);
  EXPECT_EQ(nlohmann::json::parse(whatif_json(a, {}))["workers"], (std::vector<std::string>{"2", "9", "10"}));
}

TEST(Whatif, JsonHoldsTheFigures) {
  test::PipelineLog log{.slow_rank = 1, .slow_stage = 2};
  const WhatifAnswer a = answer(run_of(log), {});
  const auto json = nlohmann::json::parse(whatif_json(a, {}));
  EXPECT_EQ(json["schema"], "orrery.whatif/1");
  EXPECT_EQ(json["step_time_s"].get<double>(), a.replayed);
  EXPECT_EQ(json["slowdown"]["by_stage"]["2"].get<double>(), a.by_stage.front().slowdown);
  EXPECT_GT(json["transfer_s"].get<double>(), 0);
  EXPECT_GT(json["skew_s"].get<double>(), 0);  // rank 0 waits for rank 1 to reduce
}

}  // namespace
}  // namespace orrery
