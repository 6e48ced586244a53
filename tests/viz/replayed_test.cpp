#include "viz/replayed.h"

#include <gtest/gtest.h>

#include "sim/chrome_trace.h"
#include "tests/temporary_folder.h"

using namespace orrery;

namespace {

const std::string kStepSpec = std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml";

}  // namespace

TEST(Replayed, AStepThatWentAsPredictedHasNoEngineError) {
  const test::TemporaryFolder folder;
  const Document predicted = open_inputs({kStepSpec})[0];
  const Prediction& p = predicted.step->prediction;
  write_chrome_trace(folder.path("step.json"), p.plan, p.trace);
  const Document measured = open_trace({folder.path("step.json")});
  const auto error = replayed_engine_error(predicted, measured, match(predicted.timeline, measured.timeline));
  ASSERT_TRUE(error.has_value());
  EXPECT_NEAR(*error, 0, 0.01);
}

TEST(Replayed, NeedsEveryTaskOfAPlan) {
  const Document predicted = open_inputs({kStepSpec})[0];
  const Document other = open_inputs({kStepSpec}, {.overrides = {"strategy.pipeline=4", "strategy.data=null"}})[0];
  EXPECT_FALSE(replayed_engine_error(predicted, other, match(predicted.timeline, other.timeline)).has_value());
  Document trace;
  EXPECT_FALSE(replayed_engine_error(trace, predicted, match(trace.timeline, predicted.timeline)).has_value());
}
