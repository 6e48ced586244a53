#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

// A table that several lookups read (multi-token prediction) is reduced when all of them have added to its gradient.
TEST(Buckets, WaitForAllThatAddToAWeight) {
  const Plan plan =
      make_plan(spec_of("name: predicts, layers: 4, hidden: 64, heads: 8, feed_forward: 256, vocab: 256, mtp_layers: 2",
                        "pipeline: 2, data: 2, sharding: zero1, global_batch: 4"));
  const RankSlot& last = plan.slots.back();
  const auto place = [&](const char* name) {
    TaskId found = kNone;
    for (TaskId t = last.begin; t < last.end; ++t) {
      if (plan.op_of(t).name == name) found = t;
    }
    return found;
  };
  // The last bucket of backward begins with the table: the prediction's block is the first that has weights.
  const TaskId lookup = place("embedding gradient");
  ASSERT_NE(lookup, kNone);
  TaskId of_table = kNone;
  for (TaskId t = last.begin; t < last.end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c == nullptr || plan.op_of(t).name != "reduce gradients") continue;
    for (const Frame& f : plan.frames) {
      const Block& block = plan.blocks[f.block];
      const bool holds = &plan.slots[f.slot] == &last && !block.parameters.empty() && f.micro_batch == 0 &&
                         block.parameters.front().name == kWordTable;
      if (holds && c->first <= f.base && f.base < c->first + c->bytes / c->width) of_table = t;
    }
  }
  ASSERT_NE(of_table, kNone);
  EXPECT_GT(of_table, lookup);
}

}  // namespace
}  // namespace orrery
