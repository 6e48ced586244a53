#include "models/layers/linear.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/spec/sharding.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// A tile has an equal part of each projection, so that every tile's first product keeps outputs of its own.
TEST(Linear, TilesOfProjectionsApartHaveAPartOfEach) {
  const auto ops_of = [](int tiling, bool apart) {
    const Spec spec =
        test::spec_of("name: llama, layers: 2, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 256, vocab: 512",
                      fmt::format("data: 2, sharding: zero3, offload: {{tiling: {}}}", tiling), 64,
                      fmt::format("profile: orrery, separate_projections: {}", apart));
    std::vector<Op> ops;
    layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), 0, false, ops);
    return ops;
  };
  int products = 0;
  for (const Op& op : ops_of(4, true)) {
    const auto* g = std::get_if<Gemm>(&op.work);
    if (g == nullptr || g->apart < 2) continue;
    ++products;
    const std::int64_t outputs = g->role == Gemm::Role::weight_gradient  ? g->m
                                 : g->role == Gemm::Role::input_gradient ? g->k
                                                                         : g->n;
    const std::int64_t all = op.name.starts_with("qkv") ? 64 + 2 * 16 : 2 * 256;
    EXPECT_EQ(outputs, all / 4) << op.name;
    EXPECT_EQ(g->apart_outputs, op.name.starts_with("qkv") ? 16 / 4 : 256 / 4) << op.name;
  }
  EXPECT_EQ(products, 2 * 3 * 4);
  EXPECT_NO_THROW(ops_of(32, false)) << "32 tiles of 96 outputs";
  EXPECT_THROW(ops_of(32, true), Error) << "16 outputs of keys have no 32 tiles";
}

}  // namespace
}  // namespace orrery
