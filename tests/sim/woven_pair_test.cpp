// The woven pair of a forward and a backward chunk in DeepSeek-V3's own trace (deepseek-ai/profile-data, training)
// beside the prediction of benchmarks/deepseek_v3_pair.yaml (docs/figures.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

double step_seconds(int global_batch) {
  return predict(load_spec(ORRERY_SOURCE_DIR "/benchmarks/deepseek_v3_pair.yaml",
                           {fmt::format("strategy.global_batch={}", global_batch)}))
      .report.step_time_s;
}

// The trace's pair takes 129.0 ms; one more micro-batch is one more pair.
TEST(WovenPair, OfDeepSeekTakesAsLongAsInItsTrace) {
  EXPECT_NEAR((step_seconds(1024) - step_seconds(512)) / 8, 0.129, 0.05 * 0.129);
}

}  // namespace
}  // namespace orrery
