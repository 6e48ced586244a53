// How gradients become their mean over the data ranks.
#include <gtest/gtest.h>

#include "tests/models/passes.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::passes;

// The mean over data ranks costs a pass over the reduced gradients, or none; with a separate bucket a second copy and a
// copy back. Gradients reduced unit by unit are averaged in another way.
TEST(Averaging, AveragesGradients) {
  for (const std::string sharding : {"none", "zero1", "zero2", "zero3"}) {
    for (const auto& [how, by_unit] : std::vector<std::pair<std::string, std::string>>{
             {"none", "scale"}, {"scale", "none"}, {"copy", "scale"}, {"copy", "scale_or_premultiply"}}) {
      for (const int data : {1, 2}) {
        const Spec spec =
            test::spec_of(test::kSmall,
                          fmt::format("data: {}, sharding: {}, bucket_MiB: 0.05, micro_batch: 1, global_batch: {}",
                                      data, sharding, 3 * data),
                          32, fmt::format("profile: orrery, gradient_average: {}, unit_average: {}", how, by_unit));
        const Plan plan = make_plan(spec);
        const std::int64_t psi = test::local_parameters(spec, 0)[0];
        const bool whole = sharding == "none" || sharding == "zero1", copy = how == "copy" && whole && data > 1;
        const bool scale = (whole ? how : by_unit) == "scale" && data > 1;  // units' gradients are fp32 here
        EXPECT_EQ(passes(plan, "average gradients").elements, scale ? (whole ? 1 : 3) * psi : copy ? psi : 0);
        EXPECT_EQ(passes(plan, "copy gradients back").count, copy);
        for (const Block& block : plan.blocks) {
          if (block.role != BlockRole::state) continue;
          EXPECT_EQ(block.buffers[kBuckets].bytes, copy ? psi * 4 : 0);
        }
      }
    }
  }
}

// Each of PyTorch's ways to train in parallel averages differently: buckets of DistributedDataParallel, a pass over
// FSDP's units.
TEST(Averaging, AveragesByWhatReduces) {
  for (const auto& [sharding, copied] : {std::pair{"none", true}, {"zero1", true}, {"zero2", false}, {"fsdp", false}}) {
    const Plan plan = make_plan(test::spec_of(
        test::kSmall, fmt::format("data: 2, sharding: {}, global_batch: 2", sharding), 32, "profile: pytorch-fsdp"));
    EXPECT_GT(passes(plan, "average gradients").elements, 0) << sharding;
    EXPECT_EQ(passes(plan, "copy gradients back").count, copied) << sharding;
  }
}

}  // namespace
}  // namespace orrery
