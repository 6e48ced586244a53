// Kinds of weights of a model.
#include "sim/picture/weights.h"

#include <gtest/gtest.h>

#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

std::vector<std::string> titles_of(const Spec& spec) {
  std::vector<std::string> titles;
  for (const WeightKind& kind : weight_kinds(spec, make_plan(spec))) titles.push_back(kind.title);
  return titles;
}

using Titles = std::vector<std::string>;

TEST(Weights, EveryKindOfLayersIsOne) {
  EXPECT_EQ(titles_of(test::spec_of(test::kSmall, "pipeline: 2, global_batch: 2")),
            (Titles{"Embedding and head", "Attention", "MLP"}));
  EXPECT_EQ(titles_of(test::spec_of("deepseek-v2-lite", "data: 2, expert: 2, global_batch: 2")),
            (Titles{"Embedding and head", "Latent attention", "MLP", "Experts"}));
  EXPECT_EQ(titles_of(test::spec_of("deepseek-v4-flash", "pipeline: 4, data: 2, expert: 2, global_batch: 8", 1024)),
            (Titles{"Embedding and head", "Window attention", "Compressed sparse attention",
                    "Heavily compressed attention", "Experts", "Experts", "Multi-token prediction"}));
  EXPECT_EQ(titles_of(test::seeing("global_batch: 1")),
            (Titles{"Vision encoder: patches", "Vision encoder: layer", "Vision encoder: projector",
                    "Embedding and head", "Attention", "MLP"}));
  EXPECT_EQ(titles_of(test::spec_of("name: hybrid, layers: 4, hidden: 64, heads: 8, kv_heads: 4, vocab: 256, "
                                    "feed_forward: 128, layer_kinds: [recurrence, attention], recurrence: {rule: "
                                    "gated_delta, heads: 16, groups: 8, key_dim: 6, value_dim: 10, chunk: 8}",
                                    "global_batch: 1")),
            (Titles{"Embedding and head", "Recurrence", "Attention", "MLP"}));
}

// Layers of all stages and chunks are counted, and every weight is in one kind.
TEST(Weights, LayersAreCounted) {
  const Spec spec = test::spec_of("deepseek-v2-lite", "pipeline: 3, data: 2, expert: 2, global_batch: 6");
  const std::vector<WeightKind> kinds = weight_kinds(spec, make_plan(spec));
  EXPECT_EQ(kinds[1].count, 27);
  EXPECT_EQ(kinds[2].layers, std::vector<std::int32_t>{0});
  EXPECT_EQ(kinds[3].count, 26);
  const Spec seeing = test::seeing("global_batch: 1");
  EXPECT_EQ(weight_kinds(seeing, make_plan(seeing))[1].count, 2);
}

// A weight that is cut into tiles is one weight.
TEST(Weights, TilesAreOneWeight) {
  const Spec spec = test::spec_of(test::kSmall, "data: 2, sharding: zero3, offload: {tiling: 2}, global_batch: 2");
  for (const WeightKind& kind : weight_kinds(spec, make_plan(spec))) {
    if (kind.title != "MLP") continue;
    for (const PlanWeight& w : kind.weights) EXPECT_EQ(w.tiles.size(), w.is_vector() ? 1U : 2U) << w.name;
  }
}

}  // namespace
}  // namespace orrery
