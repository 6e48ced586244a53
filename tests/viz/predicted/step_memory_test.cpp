#include <algorithm>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "viz/draw/area.h"
#include "viz/predicted/first_step.h"
#include "viz/predicted/step.h"

using namespace orrery;

namespace {

bool lists_moments(const StepTimeline& s, Picoseconds time) {
  const auto lines = alive_at(s, 0, time, 1000);
  return std::any_of(lines.begin(), lines.end(),
                     [](const std::string& l) { return l.find(" first moments") != std::string::npos; });
}

}  // namespace

TEST(StepMemory, ListsWhatIsAlive) {
  const StepTimeline s =
      timeline_of(predict_step(load_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/gpt-64-gpus.yaml")));
  const MemoryPeak peak = memory_peak(*memory_of(s.timeline.processes[0]), 0, s.timeline.end);
  const auto lines = alive_at(s, 0, peak.time, 10);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_NE(lines[0].find("GiB"), std::string::npos);
}

// The optimizer's moments are allocated by the first update, and stay; the curve of memory says the same.
TEST(StepMemory, OfTheFirstStepHasNoMomentsBeforeItsUpdate) {
  Spec spec = parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, software: pytorch, strategy: {data: 8, "
      "global_batch: 8, optimizer: adamw}}",
      "first.yaml");
  const auto [first, steady] = first_and_steady(*predict_step(spec));
  EXPECT_FALSE(lists_moments(first, 0));
  EXPECT_TRUE(lists_moments(first, first.timeline.end));
  EXPECT_TRUE(lists_moments(steady, 0));
  spec.steps = 2;
  const StepTimeline both = timeline_of(predict_step(spec));
  EXPECT_FALSE(lists_moments(both, 0));
  EXPECT_TRUE(lists_moments(both, both.timeline.end / 2 + 1));
}
