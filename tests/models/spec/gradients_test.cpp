#include "models/spec/gradients.h"

#include <gtest/gtest.h>

#include "models/spec/sharding.h"

namespace orrery {
namespace {

Spec spec_of(Sharding sharding) {
  Spec spec;
  spec.strategy.sharding = sharding;
  spec.strategy.data = 2;
  return spec;
}

TEST(Gradients, AreReducedUnitByUnitWhereTheyAreShardedOrLeave) {
  const auto units = [](const Spec& spec) { return unit_gradients(spec, row_of(spec.strategy.sharding)); };
  EXPECT_FALSE(units(spec_of(Sharding::none)));
  EXPECT_TRUE(units(spec_of(find_sharding("zero2"))));
  EXPECT_TRUE(units(spec_of(find_sharding("fsdp"))));
  Spec whole = spec_of(find_sharding("zero2"));
  whole.software.communication.keep_gradients_whole = true;
  EXPECT_FALSE(units(whole));
  whole.strategy.offload.gradients = MemoryTier::host;
  EXPECT_TRUE(units(whole));
}

// A stack's way of averaging gradients is used with several data-parallel ranks, unless parameter servers average them,
// or stages have different numbers of replicas.
TEST(Gradients, BecomeTheirMeanAsTheStackDoes) {
  Spec spec = spec_of(Sharding::none);
  const auto way = [&] { return averaging(spec, row_of(spec.strategy.sharding)); };
  EXPECT_EQ(way(), Averaging::none);
  spec.software.communication.gradient_average = Averaging::copy;
  EXPECT_EQ(way(), Averaging::copy);
  spec.software.communication.gradient_average = Averaging::scale;
  EXPECT_EQ(way(), Averaging::scale);
  spec.strategy.stage_replicas = {2, 1};
  EXPECT_EQ(way(), Averaging::none);
  spec.strategy.stage_replicas.clear();
  spec.strategy.data = 1;
  EXPECT_EQ(way(), Averaging::none);
  spec = spec_of(find_sharding("fsdp"));
  spec.software.communication.unit_average = UnitAveraging::scale_or_premultiply;
  EXPECT_EQ(way(), Averaging::none);
  spec.strategy.gradient_precision = Precision::bf16;
  EXPECT_EQ(way(), Averaging::scale);
}

}  // namespace
}  // namespace orrery
