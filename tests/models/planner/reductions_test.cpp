// When gradients are reduced (strategy.no_sync), by their volumes and memory.
#include <gtest/gtest.h>

#include "models/plan/hash.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr std::int64_t kElements = 8 * (64 * 64 * 4 + 3 * 64 * 256 + 2 * 64) + 2 * 256 * 64 + 64;

Plan plan_of(const std::string& sharding, const std::string& no_sync, const std::string& more = "") {
  return make_plan(test::spec_of(
      test::kSmall, fmt::format("data: 4, global_batch: 12, sharding: {}, no_sync: {}{}", sharding, no_sync, more)));
}

std::int64_t moved(const Plan& plan, CollectiveKind kind) {
  return test::elements_moved(plan, 0, Dimension::data, kind);
}

Bytes gradients(const Plan& plan) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& b = plan.blocks[f.block];
    if (b.role == BlockRole::state) sum += b.buffers[kGradients].bytes + b.buffers[kGradientShard].bytes;
  }
  return sum;
}

// Three micro-batches: whole gradients are all-reduced three times instead of once.
TEST(Reductions, OfWholeGradientsTakeAMicroBatchEach) {
  constexpr auto kAll = CollectiveKind::all_reduce, kScatter = CollectiveKind::reduce_scatter;
  EXPECT_EQ(moved(plan_of("none", "true"), kAll), kElements);
  EXPECT_EQ(moved(plan_of("none", "false"), kAll), 3 * kElements);
  EXPECT_EQ(moved(plan_of("none", "false", ", bucket_MiB: 0.1"), kAll), 3 * kElements);
  EXPECT_EQ(moved(plan_of("none", "false", ", overlap: {gradient_reduce: false}"), kAll), 3 * kElements);
  EXPECT_EQ(moved(plan_of("zero1", "false"), kAll), 3 * kElements);
  EXPECT_EQ(moved(plan_of("zero1", "false"), kScatter), 0);
  EXPECT_EQ(moved(plan_of("zero1", "true"), kScatter), kElements);
}

// ZeRO-2, ZeRO-3 and FSDP reduce with the last micro-batch alone if they keep whole gradients until then.
TEST(Reductions, OfShardsKeepWholeGradientsInBetween) {
  for (const char* sharding : {"zero2", "zero3", "fsdp", "fsdp-grad-op"}) {
    const Plan each = plan_of(sharding, "false"), once = plan_of(sharding, "true");
    EXPECT_EQ(moved(each, CollectiveKind::reduce_scatter), 3 * kElements) << sharding;
    EXPECT_EQ(moved(once, CollectiveKind::reduce_scatter), kElements) << sharding;
    EXPECT_EQ(moved(each, CollectiveKind::all_gather), moved(once, CollectiveKind::all_gather)) << sharding;
    const bool units = std::string(sharding) != "zero2";  // else the whole gradients hold the shards
    EXPECT_EQ(gradients(once) - (units ? gradients(each) : 0), 4 * kElements) << sharding;
  }
}

// The default is the habit of each: the same plan as without the key.
TEST(Reductions, AreByHabitIfNotGiven) {
  for (const auto& [sharding, habit] :
       {std::pair{"none", "true"}, {"zero1", "true"}, {"zero2", "false"}, {"zero3", "false"}, {"fsdp", "false"}}) {
    const Spec spec = test::spec_of(test::kSmall, fmt::format("data: 4, global_batch: 12, sharding: {}", sharding));
    EXPECT_EQ(plan_hash(make_plan(spec)), plan_hash(plan_of(sharding, habit))) << sharding;
  }
}

Bytes states(const Plan& plan) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    for (const BlockBuffer& b : plan.blocks[f.block].buffers)
      sum += plan.blocks[f.block].role == BlockRole::state && b.category != Category::buffers ? b.bytes : 0;
  }
  return sum;
}

// 2 + 2 + 4 + 12 bytes a parameter: weights and gradients of 16 bits, fp32 sums, master weights and moments. No block
// has gradients of 16 bits of its own then, and every product's gradient is added by another op.
TEST(Reductions, KeepGradientsOf16BitsBesideTheirSums) {
  const std::string precisions = ", precision: bf16, gradient_precision: fp32";
  for (const char* software : {"orrery", "megatron-core", "pytorch-fsdp", "nanotron"}) {
    for (const char* sharding : {"none", "zero1", "zero2"}) {
      const auto spec = [&](const char* keeps) {
        return parse_spec(fmt::format("model: {{{}}}\nsequence: 64\ncluster: {{node: dgx-h100, nodes: 1}}\nsoftware: "
                                      "{}\nstrategy: {{data: 4, global_batch: 12, sharding: {}, no_sync: true, "
                                      "keep_16bit_gradients: {}{}}}\n",
                                      test::kSmall, software, sharding, keeps, precisions),
                          "case");
      };
      const Plan kept = make_plan(spec("true")), freed = make_plan(spec("false"));
      const Bytes sharded = std::string(sharding) == "none" ? 12 : 3;
      EXPECT_EQ(states(kept), (2 + 2 + 4 + sharded) * kElements) << software << ' ' << sharding;
      EXPECT_EQ(states(freed), (2 + 4 + sharded) * kElements) << software << ' ' << sharding;
      for (const Block& block : kept.blocks) {
        if (block.role != BlockRole::layer) continue;
        for (const BlockBuffer& b : block.buffers) EXPECT_EQ(b.category == Category::gradients ? b.bytes : 0, 0);
      }
    }
  }
}

}  // namespace
}  // namespace orrery
