// How layers are cut into stages by each rule.
#include "models/stages.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

std::vector<std::int64_t> cut(const std::string& rule, int layers, int stages, int chunks = 1, int vocab = 256) {
  return stage_layers(test::spec_of(
      fmt::format("name: m, layers: {}, hidden: 64, heads: 8, feed_forward: 256, vocab: {}", layers, vocab),
      fmt::format("pipeline: {}, virtual_stages: {}, global_batch: {}", stages, chunks, stages), 32,
      "profile: orrery, stage_rule: " + rule));
}

using Cut = std::vector<std::int64_t>;

TEST(Stages, Rules) {
  EXPECT_EQ(cut("even", 8, 4), (Cut{2, 2, 2, 2}));
  EXPECT_EQ(cut("even", 8, 2, 2), (Cut{2, 2, 2, 2}));
  EXPECT_EQ(cut("even", 6, 4), (Cut{1, 2, 2, 1}));  // embedding and head count as a layer each
  EXPECT_EQ(cut("even_with_embedding", 8, 2), (Cut{4, 4}));
  EXPECT_EQ(cut("even_with_embedding", 10, 4), (Cut{2, 3, 3, 2}));
  EXPECT_EQ(cut("even_with_embedding", 8, 4), (Cut{2, 3, 2, 1}));
}

// Every rule hands out every layer, and no stage between the first and the last is empty.
TEST(Stages, HandOutEveryLayer) {
  for (const char* rule : {"even", "even_with_embedding", "by_cost", "by_cost_nanotron", "by_parameters"}) {
    for (const int layers : {4, 7, 16, 31}) {
      for (const int stages : {1, 2, 3, 4}) {
        for (const int vocab : {256, 4096, 65536}) {
          const auto layers_of = cut(rule, layers, stages, 1, vocab);
          EXPECT_EQ(std::accumulate(layers_of.begin(), layers_of.end(), std::int64_t{0}), layers);
          ASSERT_EQ(layers_of.size(), static_cast<std::size_t>(stages));
          for (int s = 1; s + 1 < stages; ++s)
            EXPECT_GE(layers_of[s], 1) << rule << " " << layers << " " << stages << " " << vocab;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery
