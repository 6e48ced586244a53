// Layers and bytes that ranks hold.
#include "sim/picture/holdings.h"

#include <gtest/gtest.h>

#include "sim/explain/formulas.h"
#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

TEST(Holdings, LayersAreThoseOfTheStage) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "pipeline: 4, global_batch: 4"));
  const std::vector<Holding> holdings = holdings_of(plan);
  ASSERT_EQ(holdings.size(), 4U);
  EXPECT_EQ(chunk_text(holdings[0].chunks.at(0)), "embedding, layers 0-1");
  EXPECT_EQ(chunk_text(holdings[1].chunks.at(0)), "layers 2-3");
  EXPECT_EQ(chunk_text(holdings[3].chunks.at(0)), "layers 6-7, head");
}

TEST(Holdings, ChunksAreVirtualStages) {
  const Plan plan =
      make_plan(test::spec_of(test::kSmall, "pipeline: 2, schedule: interleaved, virtual_stages: 2, global_batch: 4"));
  const std::vector<Holding> holdings = holdings_of(plan);
  ASSERT_EQ(holdings[1].chunks.size(), 2U);
  EXPECT_EQ(chunk_text(holdings[1].chunks[0]), "layers 2-3");
  EXPECT_EQ(chunk_text(holdings[1].chunks[1]), "layers 6-7, head");
}

TEST(Holdings, PartsBesideLayersAreNamed) {
  const Plan seeing = make_plan(test::seeing("global_batch: 1"));
  EXPECT_EQ(chunk_text(holdings_of(seeing)[0].chunks.at(0)), "vision encoder, embedding, layers 0-7, head");
  const Plan predicting = make_plan(test::spec_of(std::string(test::kSmall) + ", mtp_layers: 1", "global_batch: 1"));
  EXPECT_EQ(chunk_text(holdings_of(predicting)[0].chunks.at(0)), "embedding, layers 0-7, prediction, head");
  EXPECT_EQ(chunk_text({}), "no layers");
}

// Bytes are those of the plan's state buffers, also where they lie on the host.
TEST(Holdings, BytesAreThePlans) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan = make_plan(test::random_spec(seed));
    const std::vector<Holding> holdings = holdings_of(plan);
    for (std::size_t s = 0; s < holdings.size(); ++s)
      EXPECT_EQ(sum_of(holdings[s].parameters) + sum_of(holdings[s].gradients) + sum_of(holdings[s].optimizer),
                states_in_plan(plan, s));
  }
  const Plan offloaded =
      make_plan(test::spec_of(test::kSmall, "data: 2, sharding: zero2, offload: {optimizer: cpu}, global_batch: 2"));
  const Holding holding = holdings_of(offloaded)[0];
  EXPECT_EQ(holding.optimizer.count(MemoryTier::device), 0U);
  EXPECT_GT(holding.optimizer.at(MemoryTier::host), 0);
  EXPECT_GT(holding.parameters.at(MemoryTier::device), 0);
}

TEST(Holdings, RangesAreShort) {
  EXPECT_EQ(ranges_text({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(ranges_text({0, 1, 4, 6, 7, 8}), "0-1, 4, 6-8");
  EXPECT_EQ(ranges_text({}), "");
}

}  // namespace
}  // namespace orrery
