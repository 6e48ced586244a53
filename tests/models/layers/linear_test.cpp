#include "models/layers/linear.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
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

// torchtitan's selective recomputation by operation keeps the results of reduce-scatters but not of gathers: backward
// gathers the input of both column-parallel products again, in every layer, whether or not its MLP runs again, and
// scatters nothing again.
TEST(Linear, RecomputationByOperationGathersAgain) {
  for (const bool rowwise : {false, true}) {
    const Spec spec =
        test::spec_of("name: llama, layers: 2, hidden: 64, heads: 8, feed_forward: 256, vocab: 512",
                      fmt::format("tensor: 4, recompute: selective, precision: {}", rowwise ? "fp8" : "bf16"), 64,
                      fmt::format("profile: torchtitan, rowwise_scales: {}", rowwise));
    for (const std::int64_t layer : {0, 1}) {
      std::vector<Op> ops;
      layer_block(BlockContext(spec, row_of(spec.strategy.sharding)), layer, true, ops);
      std::map<std::pair<CollectiveKind, Phase>, int> count;
      for (const Op& op : ops) {
        if (const auto* c = std::get_if<Collective>(&op.work)) ++count[{c->kind, op.phase}];
        EXPECT_NE(op.name, "mlp down again");
      }
      EXPECT_EQ((count[{CollectiveKind::all_gather, Phase::forward}]), 2);
      EXPECT_EQ((count[{CollectiveKind::all_gather, Phase::backward}]), 4) << rowwise << ' ' << layer;
      EXPECT_EQ((count[{CollectiveKind::reduce_scatter, Phase::forward}]), 2);
      EXPECT_EQ((count[{CollectiveKind::reduce_scatter, Phase::backward}]), 2);
      EXPECT_EQ(std::ranges::count(ops, "mlp up again", &Op::name), layer);
    }
  }
}

}  // namespace
}  // namespace orrery
