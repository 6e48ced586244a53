#include "sim/job.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

const std::string kJobSpec = ORRERY_SOURCE_DIR "/examples/cpu-small.yaml";

TEST(Job, HasTheRanksAndStepsThatWereAskedFor) {
  const Job plain = make_job({.spec = kJobSpec});
  EXPECT_EQ(plain.plan.slots.size(), 4U);
  EXPECT_EQ(plain.steps, 1);
  const Job asked = make_job({.spec = kJobSpec, .overrides = {"strategy.data=2"}, .ranks = 8, .steps = 7});
  EXPECT_EQ(asked.plan.slots.size(), 8U);
  EXPECT_EQ(asked.steps, 7);
  EXPECT_NE(asked.hash, plain.hash);
}

TEST(Job, TellsItsRanksWhatTheyNeedForTheSamePlan) {
  const RankArguments a = arguments_for(make_job({.spec = kJobSpec, .ranks = 4, .steps = 3}), "folder");
  EXPECT_EQ(a.spec, kJobSpec);
  EXPECT_EQ(a.overrides, (std::vector<std::string>{"gpus=4"}));
  EXPECT_EQ(a.folder, "folder");
  EXPECT_EQ(a.steps, 3);
}

}  // namespace
}  // namespace orrery
