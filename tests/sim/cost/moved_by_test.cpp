#include "sim/cost/moved_by.h"

#include <gtest/gtest.h>

#include "tests/sim/cost/priced.h"

namespace orrery {
namespace {

// Through symmetric memory each piece of a gather and of a reduce-scatter is a copy to one rank, of the same rows.
TEST(MovedBy, PiecesThroughSymmetricMemoryAreCopies) {
  const Priced p("tensor: 8, data: 2, global_batch: 2, overlap: {tensor: true}",
                 "{profile: torchtitan, compile: true}");
  Picoseconds gather = 0, scatter = 0;
  for (TaskId t = 0; t < p.plan.task_count(); ++t) {
    const auto* c = std::get_if<Collective>(&p.plan.op_of(t).work);
    if (c == nullptr || c->algorithm != kCopyEngines) continue;
    (c->kind == CollectiveKind::shift ? gather : scatter) = p.of(t).duration;
    EXPECT_EQ(p.of(t).pressure, 0) << "copy engines take no multiprocessors";
    EXPECT_EQ(p.costs.notes[p.plan.tasks[t].op].algorithm, kCopyEngines);
  }
  EXPECT_GT(scatter, 0);
  EXPECT_LE(scatter, gather);
  EXPECT_GT(scatter, gather / 2);
}

}  // namespace
}  // namespace orrery
