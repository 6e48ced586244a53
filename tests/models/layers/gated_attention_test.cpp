// Plans of attention whose output has a gate: one projection, a gate of each number, heads cut with their gates.
#include "models/layers/gated_attention.h"

#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

constexpr const char* kGated =
    "name: gated, layers: 1, hidden: 64, heads: 8, kv_heads: 2, head_dim: 16, vocab: 256, "
    "feed_forward: 128, qk_norm: true, attention_gate: true";

TEST(GatedAttention, OneProjectionGivesTheGateToo) {
  const Plan plan = make_plan(test::spec_of(kGated, "tensor: 2, global_batch: 1"));
  int products = 0, gates = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (const auto* g = std::get_if<Gemm>(&op.work); g != nullptr && op.name == "qkv") {
      ++products;
      EXPECT_EQ(g->n, (4 + 4 + 2 * 1) * 16);  // gate and queries of four heads, keys and values of one
    }
    if (const auto* s = std::get_if<SigmoidGate>(&op.work)) {
      ++gates;
      EXPECT_EQ(s->rows * s->columns, 32 * 4 * 16);
    }
  }
  EXPECT_EQ(products, 1);
  EXPECT_EQ(gates, 2);  // forward and backward
}

// Rows of the projection: gates, queries, keys, values, each by heads; keys and values are on several ranks where ranks
// outnumber their heads.
TEST(GatedAttention, RowsOfARankAreItsHeads) {
  const Model m = test::spec_of(kGated, "global_batch: 1").model;
  const LocalParameter p = {.name = "attention.qkv.weight", .out = (2 + 2 + 2) * 16, .in = 64, .cut = Cut::heads};
  EXPECT_EQ(uncut_shape(m, p, 4).out, (8 + 8 + 2 * 2) * 16);
  EXPECT_EQ(uncut_index(m, p, 0, 3, 4), 6 * 16);                     // gate of head 6
  EXPECT_EQ(uncut_index(m, p, 2 * 16, 3, 4), (8 + 6) * 16);          // queries of head 6
  EXPECT_EQ(uncut_index(m, p, 4 * 16, 3, 4), (8 + 8 + 1) * 16);      // keys of head 1
  EXPECT_EQ(uncut_index(m, p, 5 * 16, 1, 4), (8 + 8 + 2 + 0) * 16);  // values of head 0
}

}  // namespace
}  // namespace orrery
