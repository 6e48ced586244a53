#include "sim/explain/formulas_data.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/explain/formulas.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// Ranks of a second model's own send no gradients and have whole weights, however the model that trains is sharded.
TEST(DataFormula, LeavesRanksOfASecondModelOut) {
  for (const char* sharding : {"zero1", "zero2", "hsdp, shard_group: 2"}) {
    const Spec spec = parse_spec(std::string("{model: gpt2, teacher: gpt2, workload: distill, sequence: 256, "
                                             "distill: {gpus: 2, strategy: {tensor: 2}}, cluster: {node: dgx-a100, "
                                             "nodes: 1}, gpus: 6, strategy: {data: 4, global_batch: 8, sharding: ") +
                                     sharding + "}}",
                                 "spec.yaml");
    const Prediction p = predict(spec);
    const std::vector<Volume> list = volumes(spec, p.plan, p.report);
    ASSERT_FALSE(list.empty());
    EXPECT_EQ(list[0].what, "data");
    EXPECT_NEAR(list[0].simulated / list[0].bytes, 1, 1e-4) << sharding;
    const std::size_t second = p.plan.classes.size() - 1;
    ASSERT_TRUE(p.plan.classes[second].second);
    EXPECT_NEAR(frozen_bytes(spec, p.plan, second) / static_cast<double>(states_in_plan(p.plan, second)), 1, 1e-3);
  }
}

}  // namespace
}  // namespace orrery
