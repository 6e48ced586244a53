#include "models/planner/matrix_optimizers.h"

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

// Sums of rows and columns of every matrix, squares of every vector (Shazeer and Stern 2018, section 3).
constexpr std::int64_t kSums = 8 * ((192 + 64) + (64 + 64) + (512 + 64) + (64 + 256) + 2 * 64) + 2 * (256 + 64) + 64;

Bytes optimizer(const std::string& strategy) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, strategy));
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& b = plan.blocks[f.block];
    if (b.role == BlockRole::state && f.slot == 0) sum += b.buffers[kMoment1].bytes + b.buffers[kMoment2].bytes;
  }
  return sum;
}

TEST(Adafactor, KeepsSumsOfRowsAndColumns) {
  EXPECT_EQ(optimizer("optimizer: adafactor"), 4 * kSums);
  EXPECT_EQ(optimizer("data: 4, global_batch: 4, sharding: zero1, optimizer: adafactor"), 4 * kSums);
  EXPECT_EQ(optimizer("tensor: 2, optimizer: adafactor"), 4 * kSums);  // sums of complete matrices
}

TEST(Adafactor, AddsUpSumsOfShards) {
  const auto reduced = [](const std::string& strategy, const std::string& name = "reduce row and column sums") {
    const Plan plan = make_plan(test::spec_of(test::kSmall, strategy + ", optimizer: adafactor"));
    std::int64_t sum = 0;
    for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      if (plan.op_of(t).name == name) sum += c->bytes / c->width;
    }
    return sum;
  };
  EXPECT_EQ(reduced("data: 4, global_batch: 4"), 0);
  EXPECT_EQ(reduced("data: 4, global_batch: 4, sharding: fsdp"), kSums);
  EXPECT_EQ(reduced("tensor: 2"), kSums);
  EXPECT_EQ(reduced("tensor: 2, data: 4, global_batch: 4, sharding: zero1"), 2 * kSums);
  // two norms of each tensor
  EXPECT_EQ(reduced("data: 4, global_batch: 4, sharding: fsdp", "reduce update norms"), 2 * (8 * 6 + 3));
}

// The second pass reads gradients (fp32) and weights: masters of four bytes.
TEST(Adafactor, NormsOfUpdatesReadWeightsToo) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "optimizer: adafactor"));
  std::map<SquaredNorm::Of, double> bytes;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    if (const auto* n = std::get_if<SquaredNorm>(&plan.op_of(t).work)) bytes[n->of] += cost_of(*n, 2).bytes;
  }
  EXPECT_GT(bytes[SquaredNorm::Of::lines], 0);
  EXPECT_EQ(bytes[SquaredNorm::Of::updates], 2 * bytes[SquaredNorm::Of::lines]);
}

// Eight-bit moments: a byte each, and an fp32 scale for each 256 (Dettmers et al. 2022).
TEST(Adafactor, EightBitMomentsTakeAByteAndAScale) {
  const std::int64_t all = 8 * (64 * 64 * 4 + 3 * 64 * 256 + 128) + 2 * 256 * 64 + 64;
  EXPECT_EQ(optimizer("optimizer: {name: adamw, states: 8bit}"), 2 * (all + 4 * ((all + 255) / 256)));
  EXPECT_EQ(optimizer("optimizer: adamw"), 8 * all);
  EXPECT_EQ(optimizer("optimizer: lion"), 4 * all);
}

}  // namespace
}  // namespace orrery
