// The table of data-parallel variants.
#include "models/spec/sharding.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/plan/hash.h"

#include "models/base/error.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// Each row shards at least as much as a plainer one of its family; only variants that are implemented are listed.
TEST(Sharding, RowsAreOrdered) {
  for (const ShardingRow& row : sharding_rows()) {
    EXPECT_EQ(&row_of(sharding_of(row)), &row);
    EXPECT_EQ(find_sharding(row.name), sharding_of(row));
    EXPECT_EQ(bounding(row_of(bounding(row))), bounding(row)) << row.name;
    EXPECT_NO_THROW(with_host_gradients(row)) << row.name;
    EXPECT_TRUE(!row.shards_parameters || row.shards_gradients) << row.name;
    EXPECT_TRUE(!row.shards_gradients || row.shards_optimizer) << row.name;
    EXPECT_TRUE(!row.fp32_shards || row.shards_parameters) << row.name;
  }
}

// FSDP1 joins a unit's gradients before it widens and reduces them; FSDP2 copies what it gathered out, where a block's
// first op waits for it, and gradients in, which one pass widens. Stacks that keep parameters whole have no units to
// copy.
TEST(Sharding, CopiesUnits) {
  for (const char* sharding : {"zero1", "zero3", "fsdp"}) {
    for (const char* copies : {"none", "parameters", "gradients"}) {
      for (const int data : {1, 2}) {
        for (const char* gradients : {"fp32", "bf16"}) {
          const Spec spec = test::spec_of(
              test::kSmall,
              fmt::format("data: {}, sharding: {}, gradient_precision: {}, micro_batch: 1, global_batch: {}", data,
                          sharding, gradients, data),
              32, fmt::format("profile: orrery, kept_units: none, unit_copies: {}", copies));
          const Plan plan = make_plan(spec);
          const std::int64_t psi = test::local_parameters(spec, 0)[0];
          // ZeRO's stages of one rank are planned as none.
          const bool units = std::string(sharding) == "fsdp" || (std::string(sharding) == "zero3" && data > 1);
          const bool wide = std::string(gradients) == "fp32";
          const bool out = std::string(copies) == "parameters" && data > 1, joins = std::string(copies) == "gradients";
          const auto copied = [&](const char* name) {
            std::int64_t elements = 0;
            for (TaskId t = 0; t < plan.task_count(); ++t) {
              if (plan.op_of(t).name == name) elements += std::get<Cast>(plan.op_of(t).work).elements;
            }
            return elements;
          };
          EXPECT_EQ(copied("join gradients"), units && (joins || (out && !wide)) ? psi : 0);
          EXPECT_EQ(copied("cast gradients"), units && wide ? psi : 0);
          EXPECT_EQ(copied("copy unit out"), units && out ? 2 * psi : 0);
          for (TaskId t = 0; t < plan.task_count(); ++t) {
            if (plan.op_of(t).name != "copy unit out") continue;
            EXPECT_EQ(plan.op_of(t).lane, LaneKind::compute);
            EXPECT_EQ(plan.op_of(t + 1).lane, LaneKind::compute);  // the op that reads the weights
          }
        }
      }
    }
  }
}

// A rank that shares its weights with no other gathers and copies nothing, unless something is offloaded.
TEST(Sharding, OfOneRankIsNone) {
  const auto plan_of = [](const std::string& strategy) {
    return plan_hash(make_plan(test::spec_of(test::kSmall, "data: 1, global_batch: 2, " + strategy)));
  };
  for (const char* sharding : {"zero1", "zero2", "zero3"}) {
    EXPECT_EQ(plan_of(fmt::format("sharding: {}", sharding)), plan_of("sharding: none")) << sharding;
    EXPECT_EQ(plan_of(fmt::format("sharding: {}, tensor: 2", sharding)), plan_of("sharding: none, tensor: 2"));
  }
  EXPECT_NE(plan_of("sharding: zero3, offload: {optimizer: cpu, parameters: cpu}"), plan_of("sharding: none"));
  const Spec spec = test::spec_of(test::kSmall, "data: 1, sharding: zero3, global_batch: 2");
  const auto told = std::find_if(spec.origins.begin(), spec.origins.end(),
                                 [](const Origin& o) { return o.key == "strategy.sharding"; });
  ASSERT_NE(told, spec.origins.end());
  EXPECT_EQ(told->value, "none");
  EXPECT_EQ(told->asked, "zero3 over one rank");
  const Spec narrow = test::spec_of(
      test::kSmall, "data: 1, sharding: zero3, zero_quantize: {weights: int8, gradients: int4}, global_batch: 2");
  int narrowed = 0;
  for (const Origin& o : narrow.origins) {
    if (!o.key.starts_with("strategy.zero_quantize.")) continue;
    EXPECT_EQ(o.value, "none") << o.key;
    narrowed += o.asked == "int8 over one rank" || o.asked == "int4 over one rank" ? 1 : 0;
  }
  EXPECT_EQ(narrowed, 2);
  EXPECT_EQ(test::spec_of(test::kSmall, "data: 2, sharding: zero3").strategy.sharding, find_sharding("zero3"));
}

}  // namespace
}  // namespace orrery
