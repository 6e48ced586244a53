#include "sim/runs/job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

const std::string kJobSpec = ORRERY_SOURCE_DIR "/examples/cpu-small.yaml";

TEST(Job, HasTheRanksAndStepsThatWereAskedFor) {
  const Job plain = make_job({.spec = kJobSpec});
  EXPECT_EQ(plain.plan.classes.size(), 4U);
  EXPECT_EQ(plain.steps, 1);
  const Job asked = make_job({.spec = kJobSpec, .overrides = {"strategy.data=2"}, .ranks = 8, .steps = 7});
  EXPECT_EQ(asked.plan.classes.size(), 8U);
  EXPECT_EQ(asked.steps, 7);
  EXPECT_NE(asked.hash, plain.hash);
}

// An asynchronous plan holds several steps: more steps are run than were asked for, and a message says so.
TEST(Job, SaysHowManyStepsAreRunInstead) {
  const std::vector<std::string> overrides = {"strategy.tensor=1", "strategy.pipeline=4", "strategy.micro_batch=1",
                                              "strategy.schedule=pipedream-2bw", "strategy.clip=0"};
  const Job job = make_job({.spec = kJobSpec, .overrides = overrides, .steps = 1});
  const std::int64_t steps = job.plan.steps;
  ASSERT_GT(steps, 1);
  EXPECT_EQ(rounded_steps(job), fmt::format("{} steps instead of 1: the plan of pipedream-2bw fills its pipeline and "
                                            "empties it over {}",
                                            steps, steps));
  EXPECT_EQ(rounded_steps(make_job({.spec = kJobSpec, .overrides = overrides, .steps = 2 * steps})), "");
  EXPECT_EQ(rounded_steps(make_job({.spec = kJobSpec, .steps = 3})), "");
}

TEST(Job, TellsItsRanksWhatTheyNeedForTheSamePlan) {
  const RankArguments a = arguments_for(make_job({.spec = kJobSpec, .ranks = 4, .steps = 3}), "folder");
  EXPECT_EQ(a.spec, kJobSpec);
  EXPECT_EQ(a.overrides, (std::vector<std::string>{"gpus=4"}));
  EXPECT_EQ(a.folder, "folder");
  EXPECT_EQ(a.steps, 3);
}

// More ranks than cores need an explicit option; up to eight small ranks always run.
TEST(Job, OfAClusterIsNotStartedByMistake) {
  const auto refusal = [](std::int64_t gpus, std::int64_t ranks, std::int64_t cores,
                          const std::string& device = "cpu") {
    const std::string spec = ORRERY_SOURCE_DIR "/examples/cpu-small.yaml";
    const std::vector<std::string> set = {fmt::format("gpus={}", gpus), "strategy={global_batch: 64, micro_batch: 1}",
                                          "cluster={node: dgx-h100, nodes: 8}"};
    try {
      check_cores(make_job({.spec = spec, .overrides = set, .device = device, .ranks = ranks}), cores);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code, 2);
      return std::string(error.what()).substr(spec.size());
    }
    return std::string();
  };
  EXPECT_EQ(
      refusal(64, 0, 2),
      ": gpus: 64 ranks for 2 cores of this machine; give --ranks 64 to start them all the same, or --ranks N for "
      "fewer (or orrery simulate, for a prediction)");
  EXPECT_EQ(refusal(64, 64, 2), "");
  EXPECT_EQ(refusal(64, 4, 2), "");
  EXPECT_EQ(refusal(64, 0, 64), "");
  EXPECT_EQ(refusal(8, 0, 2), "");
  EXPECT_EQ(refusal(64, 0, 2, "cuda"), "");
}

}  // namespace
}  // namespace orrery
