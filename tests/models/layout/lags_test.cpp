#include "models/layout/lags.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec many_stragglers(double share) {
  Spec spec = test::spec_of(test::kSmall, "tensor: 4, pipeline: 4, data: 64, global_batch: 128");
  spec.cluster.straggler_share = share;
  spec.cluster.straggler_slowdown = 1.5;
  return spec;
}

// A tenth of 1,024 ranks is slow: nearly every replica has stragglers in places of its own, which would be more than
// 512 classes of ranks.
TEST(Lags, OfManyStragglersMakeFewClasses) {
  const Plan plan = make_plan(many_stragglers(0.1));
  EXPECT_LE(plan.classes.size(), 256U);
  EXPECT_GT(plan.classes.size(), 4U);
  const auto ranks = [](std::int64_t sum, const RankClass& s) { return sum + s.multiplicity; };
  EXPECT_EQ(std::accumulate(plan.classes.begin(), plan.classes.end(), std::int64_t{0}, ranks), plan.ranks);
}

// With eight GPUs on four NICs, a rank feels the slowdown of the other rank of its NIC.
TEST(Lags, AreFeltOnTheSameNic) {
  Cluster c;
  c.gpus_per_node = 8;
  c.nics = 4;
  std::vector<double> slow(16, 1);
  slow[2] = 1.5;
  const std::vector<Lag> felt = lags_felt(c, slow);
  EXPECT_EQ(felt[2], (Lag{1.5}));
  EXPECT_EQ(felt[3], (Lag{1, 1.5}));
  EXPECT_EQ(felt[4], (Lag{1}));
}

}  // namespace
}  // namespace orrery
