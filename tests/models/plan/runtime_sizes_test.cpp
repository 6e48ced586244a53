// Plans with sizes that are known only at run time: the same as if they had been planned with these sizes.
#include "models/plan/runtime_sizes.h"

#include <gtest/gtest.h>

#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// moe keys beyond the experts, strategy keys beyond the ranks.
struct SizedCase {
  const char *moe, *strategy;
};
constexpr SizedCase kSizedCases[] = {
    {"", "data: 2, expert: 2"},
    {", capacity_factor: 1.25", "data: 4, expert: 4"},
    {", imbalance: 1.5", "data: 4, expert: 2"},
    {"", "tensor: 2, data: 2, expert: 2, expert_tensor: 2"},
    {", shared_feed_forward: 64", "data: 4, expert: 4, recompute: full"},
    {", dispatch: hierarchical", "data: 4, expert: 4"},
    {"", "data: 2, expert: 2, precision: fp8"},
};

Plan planned(const SizedCase& c) {
  return unfold(make_plan(test::spec_of(
      fmt::format(
          "name: moe, layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 64, bias: true, moe: {{experts: "
          "8, top_k: 2, feed_forward: 64{}}}",
          c.moe),
      fmt::format("{}, global_batch: 8, micro_batch: 1", c.strategy), 64)));
}

std::vector<std::vector<std::int64_t>> times(const Plan& plan, std::int64_t factor) {
  std::vector<std::vector<std::int64_t>> sizes(plan.classes.size());
  for (const Frame& f : plan.frames) {
    for (const RuntimeSize& s : plan.blocks[f.block].runtime_sizes) sizes[f.slot].push_back(s.predicted * factor);
  }
  return sizes;
}

double work_of(const Plan& plan, TaskId t) {
  const Op& op = plan.op_of(t);
  if (const auto* c = std::get_if<Collective>(&op.work)) return static_cast<double>(c->bytes);
  const Cost cost = cost_of(op.work, plan.element_bytes);
  return std::max(cost.flops, cost.bytes);
}

TEST(RuntimeSizes, PlannedOnesChangeNothing) {
  for (const SizedCase& c : kSizedCases) {
    SCOPED_TRACE(fmt::format("{} {}", c.moe, c.strategy));
    const Plan plan = planned(c), same = with_runtime_sizes(plan, times(plan, 1));
    ASSERT_TRUE(has_runtime_sizes(plan));
    ASSERT_EQ(same.task_count(), plan.task_count());
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      EXPECT_EQ(work_of(same, t), work_of(plan, t)) << describe_task(plan, t);
      EXPECT_EQ(same.op_of(t).work.index(), plan.op_of(t).work.index());
    }
    for (std::size_t f = 0; f < plan.frames.size(); ++f) {
      const auto &slots = same.blocks[same.frames[f].block].buffers,
                 &before = plan.blocks[plan.frames[f].block].buffers;
      for (std::size_t s = 0; s < before.size(); ++s) EXPECT_EQ(slots[s].bytes, before[s].bytes) << before[s].name;
    }
  }
}

// Every op on rows that are counted at run time does twice the work, except for the part that it does once per token.
TEST(RuntimeSizes, AllWorkAndBuffersFollowThem) {
  for (const SizedCase& c : kSizedCases) {
    SCOPED_TRACE(fmt::format("{} {}", c.moe, c.strategy));
    const Plan plan = planned(c), twice = with_runtime_sizes(plan, times(plan, 2));
    int sized = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (plan.op_of(t).runtime_size < 0) {
        EXPECT_EQ(work_of(twice, t), work_of(plan, t)) << describe_task(plan, t);
        continue;
      }
      ++sized;
      EXPECT_GT(work_of(twice, t), 1.3 * work_of(plan, t)) << describe_task(plan, t);
      EXPECT_LE(work_of(twice, t), 2 * work_of(plan, t)) << describe_task(plan, t);
    }
    EXPECT_GT(sized, 0);
    for (std::size_t f = 0; f < plan.frames.size(); ++f) {
      const auto &slots = twice.blocks[twice.frames[f].block].buffers,
                 &before = plan.blocks[plan.frames[f].block].buffers;
      for (std::size_t s = 0; s < before.size(); ++s)
        EXPECT_EQ(slots[s].bytes, before[s].bytes * (before[s].runtime_size < 0 ? 1 : 2)) << before[s].name;
    }
  }
}

// Sizes are set for each rank and frame separately; a transfer is sized by its busiest end; a buffer has room for a row
// even where there is none.
TEST(RuntimeSizes, EveryFrameHasItsOwn) {
  const Plan plan = planned(kSizedCases[0]);
  std::vector<std::vector<std::int64_t>> sizes = times(plan, 1);
  ASSERT_EQ(sizes[0].size(), 24U);  // 2 layers, 4 micro-batches: sent, received, gathered
  const std::int64_t all = sizes[0][0];
  sizes[0][1] = sizes[0][2] = 0;
  sizes[1][1] = sizes[1][2] = 2 * all;
  const Plan uneven = with_runtime_sizes(plan, sizes);
  int none = 0, most = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Frame& f = plan.frames[plan.tasks[t].frame];
    if (plan.op_of(t).runtime_size < 0) continue;
    const bool first = f.layer == 0 && f.micro_batch == 0;
    const double before = work_of(plan, t), now = work_of(uneven, t);
    if (const auto* product = std::get_if<GroupedGemm>(&uneven.op_of(t).work)) {
      EXPECT_EQ(product->rows, !first ? all : f.slot == 0 ? 0 : 2 * all) << describe_task(plan, t);
      none += product->rows == 0 ? 1 : 0;
    }
    if (!moves(plan.op_of(t))) continue;
    EXPECT_EQ(now, first ? 2 * before : before) << describe_task(plan, t);
    most += now > before ? 1 : 0;
  }
  EXPECT_EQ(none, 6);      // two products, each with two gradients
  EXPECT_EQ(most, 2 * 6);  // both ranks: tokens and weights there, outputs back, and all three in backward
  for (const Block& b : uneven.blocks) {
    for (const BlockBuffer& s : b.buffers) EXPECT_TRUE(s.runtime_size < 0 || s.bytes > 0) << s.name;
  }
}

// A micro-batch passes through one of the two copies; in the other it has a frame, for which nothing is counted.
TEST(RuntimeSizes, AreCountedInTheCopyThatAMicroBatchGoesThrough) {
  const Plan plan = planned({"", "pipeline: 2, data: 1, schedule: chimera"});
  const std::vector<std::size_t> counts = counted_sizes(plan);
  std::size_t counted = 0, frames = 0;
  for (std::size_t f = 0; f < counts.size(); ++f) {
    const std::size_t all = plan.blocks[plan.frames[f].block].runtime_sizes.size();
    EXPECT_TRUE(counts[f] == 0 || counts[f] == all);
    counted += counts[f];
    frames += all;
  }
  EXPECT_GT(counted, 0U);
  EXPECT_EQ(2 * counted, frames);
  for (const SizedCase& c : kSizedCases) {
    const Plan one = planned(c);
    for (std::size_t f = 0; f < one.frames.size(); ++f)
      EXPECT_EQ(counted_sizes(one)[f], one.blocks[one.frames[f].block].runtime_sizes.size()) << c.strategy;
  }
}

}  // namespace
}  // namespace orrery
