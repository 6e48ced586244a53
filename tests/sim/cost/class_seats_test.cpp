#include "sim/cost/class_seats.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

// Two stages of 12 ranks each on nodes of eight: the first replicas have both stages on nodes 0 and 1, the last ones on
// 1 and 2.
TEST(ClassSeats, TellNodesOfGroupsAndStages) {
  const Spec spec = parse_spec(
      "{model: {name: t, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096}, sequence: 256, cluster: "
      "{node: dgx-h100, nodes: 3, network: {kind: fat-tree, leaf: {nodes: 1, uplinks: 1}}}, strategy: {tensor: 4, "
      "pipeline: 2, data: 3, global_batch: 6}}",
      "seats.yaml");
  const Plan plan = make_plan(spec);
  const Uplinks uplinks(plan, spec.cluster, 8);
  const ClassSeats seats(plan, uplinks, 8);
  EXPECT_EQ(seats.spread(plan.dimensions[static_cast<std::size_t>(Dimension::data)], 0), (Spread{2, 1}));
  EXPECT_EQ(seats.spread(plan.dimensions[static_cast<std::size_t>(Dimension::tensor)], 4), Spread{4});
  EXPECT_FALSE(seats.is_near(0, 1));
  EXPECT_NE(seats.crossed(0, 1), 0U);
  const auto near = [&](std::uint32_t s) { return seats.is_near(s, 0) && seats.crossed(s, 0) == 0; };
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) EXPECT_TRUE(near(s)) << "the stage itself";
}

}  // namespace
}  // namespace orrery
