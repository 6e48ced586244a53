// Names and frames of a plan.
#include "models/plan/plan.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

TEST(Plan, NamesAreDistinct) {
  std::set<std::string_view> lanes, categories, dimensions;
  for (std::uint32_t l = 0; l < kLanes; ++l) lanes.insert(name_of(static_cast<LaneKind>(l)));
  for (int c = 0; c < kCategories; ++c) categories.insert(name_of(static_cast<Category>(c)));
  for (int d = 0; d <= static_cast<int>(Dimension::world); ++d) dimensions.insert(name_of(static_cast<Dimension>(d)));
  EXPECT_EQ(lanes.size(), kLanes);
  EXPECT_EQ(categories.size(), static_cast<std::size_t>(kCategories));
  EXPECT_EQ(dimensions.size(), static_cast<std::size_t>(Dimension::world) + 1);
}

// Blocks of a chunk form a chain per micro-batch, and every frame finds its weights.
TEST(Plan, FramesFormChains) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "pipeline: 2, virtual_stages: 2, global_batch: 4"));
  for (std::uint32_t f = 0; f < plan.frames.size(); ++f) {
    const Frame& frame = plan.frames[f];
    EXPECT_EQ(frame_of(plan, f, Scope::own), f);
    if (frame.next != kNone) {
      EXPECT_EQ(plan.frames[frame.next].previous, f);
      EXPECT_EQ(plan.frames[frame.next].micro_batch, frame.micro_batch);
      EXPECT_EQ(plan.frames[frame.next].chunk, frame.chunk);
      EXPECT_EQ(frame_of(plan, f, Scope::next), frame.next);
    }
    if (frame.micro_batch < 0) continue;
    EXPECT_EQ(plan.blocks[plan.frames[frame_of(plan, f, Scope::state)].block].role, BlockRole::state);
    EXPECT_EQ(plan.blocks[plan.frames[frame_of(plan, f, Scope::unit)].block].role, BlockRole::unit);
  }
}

TEST(Plan, RanksKnowTheirSlot) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "tensor: 2, pipeline: 2, data: 2, global_batch: 4"));
  EXPECT_EQ(slots_of_ranks(plan), (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace orrery
