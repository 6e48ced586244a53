#include "models/cost/step_fit.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/cost/profile.h"

namespace orrery {
namespace {

StepFit example() {
  StepFit fit;
  fit.steps = 3;
  fit.software = "megatron-core";
  fit.low = .9;
  fit.high = 1.12;
  for (std::size_t i = 0; i < kFitParts; ++i) fit.numbers[i] = {1 + .1 * static_cast<double>(i), .05, .1};
  return fit;
}

TEST(StepFit, IsReadAsItWasWritten) {
  Profile p;
  p.rest_built_in = true;
  p.steps = example();
  const StepFit read = parse_profile(to_json(p), "p.json").steps;
  EXPECT_EQ(read.steps, 3);
  EXPECT_EQ(read.software, "megatron-core");
  EXPECT_DOUBLE_EQ(read.high, 1.12);
  EXPECT_DOUBLE_EQ(read.factor(FitPart::between), 1.5);
  EXPECT_DOUBLE_EQ(read.numbers[0].prior_spread, .1);
}

TEST(StepFit, RefusesWhatIsNoFactor) {
  nlohmann::json steps = json_of(example());
  steps["numbers"]["host"]["factor"] = 0;
  const nlohmann::json file = {{"rest", "built-in"}, {"steps", steps}};
  EXPECT_THROW(parse_profile(file.dump(), "p.json"), Error);
}

TEST(StepFit, SlowsTheFormulasDown) {
  Profile p;
  p.gemm.tiles = {{256, 128, .8}};
  p.attention = {{"fa2", 5, {{128, .5, .4, 0, 0}}}};
  p.memory.fraction = .72;
  apply(StepFit{}, p);
  EXPECT_DOUBLE_EQ(p.memory.fraction, .72) << "no steps, no change";
  apply(example(), p);
  EXPECT_DOUBLE_EQ(p.gemm.tiles[0].efficiency, .8);
  EXPECT_DOUBLE_EQ(p.attention[0].heads[0].backward_fraction, .4 / 1.1);
  EXPECT_DOUBLE_EQ(p.memory.fraction, .72 / 1.2);
}

}  // namespace
}  // namespace orrery
