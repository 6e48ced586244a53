#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "viz/draw/area.h"
#include "viz/predicted/step.h"

using namespace orrery;

TEST(StepMemory, ListsWhatIsAlive) {
  const StepTimeline s =
      timeline_of(predict_step(load_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml")));
  const MemoryPeak peak = memory_peak(*memory_of(s.timeline.processes[0]), 0, s.timeline.end);
  const auto lines = alive_at(s, 0, peak.time, 10);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_NE(lines[0].find("GiB"), std::string::npos);
}
