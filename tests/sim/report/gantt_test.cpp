#include "sim/report/gantt.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/spec.h"
#include "sim/engine/simulate.h"

namespace orrery {
namespace {

// GPipe, two stages, two micro-batches, every forward 1 us and every backward 2 us in all: the picture can be drawn by
// hand.
TEST(Gantt, DrawsTheTextbookPipeline) {
  const Spec spec = parse_spec(
      "model: {name: t, layers: 2, hidden: 64, heads: 2, feed_forward: 128, vocab: 128}\nsequence: 16\n"
      "cluster: {node: dgx-h100, nodes: 1}\n"
      "strategy: {pipeline: 2, data: 1, schedule: gpipe, global_batch: 2, clip: 0, stage_layers: [1, 1]}\n",
      "test.yaml");
  const Plan plan = make_plan(spec);
  Timing timing;
  timing.row_of_slot.assign(plan.classes.size(), 0);
  timing.rows.assign(1, std::vector<OpTiming>(plan.ops.size()));
  for (const Block& block : plan.blocks) {
    if (block.role != BlockRole::layer) continue;
    timing.rows[0][block.forward.front()].duration = 1'000'000;
    timing.rows[0][block.backward.front()].duration = 2'000'000;
  }
  const Trace trace = simulate(plan, timing);
  EXPECT_EQ(trace.step_time, 9'000'000);
  EXPECT_EQ(gantt(plan, trace, 9, 1).substr(0, 20), "  stage 0  FF...BBBB");
  EXPECT_EQ(gantt_columns(plan, 0), 100);
  EXPECT_EQ(gantt_columns(plan, 60), 49);  // "  stage 0  " and 49 letters
  EXPECT_EQ(gantt_columns(plan, 400), 100);
}

}  // namespace
}  // namespace orrery
