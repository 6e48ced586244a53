// Blocks whose backward is split into two parts.
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// A unit's gradient belongs to one micro-batch, and backwards of other micro-batches run between its two parts: the
// weight gradients from the first part wait in the block's own buffers, and only the second part writes those of the
// unit.
TEST(BlockSplit, OnlyTheSecondPartWritesAUnitsGradient) {
  const Plan plan = make_plan(test::spec_of(test::kSmall,
                                            "pipeline: 2, data: 2, sharding: zero2, schedule: zb-h1, "
                                            "global_batch: 8"));
  std::int64_t early = 0, late = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    for (const Operand& o : op.operands) {
      if (o.access == Access::read || o.parameter < 0) continue;
      const bool unit = o.scope == Scope::unit && o.slot == kUnitGradient;
      EXPECT_FALSE(unit && op.phase == Phase::input_gradient) << op.name;
      early += o.scope == Scope::own ? 1 : 0;
      late += unit && op.name == "early gradient accumulate" ? 1 : 0;
    }
  }
  EXPECT_GT(early, 0);
  EXPECT_EQ(early, late);
}

}  // namespace
}  // namespace orrery
