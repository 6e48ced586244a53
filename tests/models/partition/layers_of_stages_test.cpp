// How layers are cut into stages by each rule.
#include "models/partition/layers_of_stages.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/models/plans.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

std::vector<std::int64_t> cut(const std::string& rule, int layers, int stages, int chunks = 1, int vocab = 256) {
  return stage_layers(test::spec_of(
      fmt::format("name: m, layers: {}, hidden: 64, heads: 8, feed_forward: 256, vocab: {}", layers, vocab),
      fmt::format("pipeline: {}, virtual_stages: {}, global_batch: {}", stages, chunks, stages), 32,
      "profile: orrery, stage_rule: " + rule));
}

using LayerCut = std::vector<std::int64_t>;

TEST(Stages, Rules) {
  EXPECT_EQ(cut("even", 8, 4), (LayerCut{2, 2, 2, 2}));
  EXPECT_EQ(cut("even", 8, 2, 2), (LayerCut{2, 2, 2, 2}));
  EXPECT_EQ(cut("even", 6, 4), (LayerCut{1, 2, 2, 1}));  // embedding and head count as a layer each
  EXPECT_EQ(cut("even_with_embedding", 8, 2), (LayerCut{4, 4}));
  EXPECT_EQ(cut("even_with_embedding", 10, 4), (LayerCut{2, 3, 3, 2}));
  EXPECT_EQ(cut("even_with_embedding", 8, 4), (LayerCut{2, 3, 2, 1}));
}

// An encoder is on the first stage, which gets fewer layers where stages are cut by cost or by parameters.
TEST(Stages, AnEncoderWeighsOnTheFirst) {
  for (const char* rule : {"by_cost", "by_parameters"}) {
    const auto cut_with = [&](const char* encoder) {
      Spec spec = test::seeing("pipeline: 2, global_batch: 2", "", encoder);
      spec.software.layout.stage_rule =
          std::string_view(rule) == "by_cost" ? StageRule::by_cost : StageRule::by_parameters;
      return stage_layers(spec);
    };
    EXPECT_EQ(cut_with("projectors: 1"), (LayerCut{4, 4})) << rule;
    EXPECT_LT(cut_with("window: 0, projector: 4096").front(), 4) << rule;
  }
}

LayerCut planned(const std::string& schedule, const std::string& more, int layers, int stages) {
  return stage_layers(test::spec_of(
      fmt::format("name: m, layers: {}, hidden: 64, heads: 8, feed_forward: 256, vocab: 256{}", layers, more),
      fmt::format("pipeline: {}, schedule: {}, global_batch: 8", stages, schedule), 32, "profile: orrery"));
}

// DAPPLE's planner weighs layer by layer: three dense layers cost as much as one with four experts per token.
TEST(Stages, DappleCutsForTheLeastLatency) {
  const std::string experts = ", moe: {experts: 8, top_k: 4, feed_forward: 256, first_layer: 3}";
  EXPECT_EQ(planned("1f1b", experts, 6, 2), (LayerCut{3, 3}));
  EXPECT_EQ(planned("dapple", experts, 6, 2), (LayerCut{4, 2}));
  EXPECT_EQ(planned("dapple", "", 8, 4), (LayerCut{2, 2, 2, 2}));
}

// If all stages share the vocabulary, none has more of it than another, so layers are divided as evenly as possible.
TEST(Stages, ThatShareTheVocabularyHaveAsManyLayers) {
  EXPECT_EQ(planned("vocab-1f1b", "", 6, 4), (LayerCut{2, 2, 1, 1}));
  EXPECT_EQ(planned("1f1b", "", 6, 4), (LayerCut{1, 2, 2, 1}));
}

// The least possible cost of the most expensive stage, over all ways to hand out `layers`, at least one to each stage
// between the ends.
double best_of_all(int layers, int stage, int stages, double embedding, double layer, double head) {
  double best = std::numeric_limits<double>::max();
  const bool first = stage == 0, last = stage + 1 == stages;
  for (int n = first || last ? 0 : 1; n <= layers; ++n) {
    if (last && n < layers) continue;
    const double own = (first ? embedding : 0) + n * layer + (last ? head : 0);
    const double rest = last ? 0 : best_of_all(layers - n, stage + 1, stages, embedding, layer, head);
    best = std::min(best, std::max(own, rest));
  }
  return best;
}

// Rules that balance cost find a division of layers that no other improves, whatever embedding and output layer cost.
TEST(Stages, NoCutIsBetter) {
  for (const char* rule : {"by_cost", "by_parameters"}) {
    const bool parameters = std::string(rule) == "by_parameters";
    const double layer = 2.0 * 64 * 64 + 2.0 * 64 * 64 + 3.0 * 64 * 256 + (parameters ? 0 : 2.0 * 32 * 64);
    for (int layers = 2; layers <= 9; ++layers) {
      for (int stages = 1; stages <= std::min(layers, 5); ++stages) {
        for (const int vocab : {64, 1024, 3000, 16384}) {
          const double head = 64.0 * vocab, embedding = parameters ? head : 0;
          const LayerCut made = cut(rule, layers, stages, 1, vocab);
          double worst = 0;
          for (int s = 0; s < stages; ++s) {
            worst = std::max(
                worst, (s == 0 ? embedding : 0) + (s + 1 == stages ? head : 0) + static_cast<double>(made[s]) * layer);
          }
          EXPECT_EQ(worst, best_of_all(layers, 0, stages, embedding, layer, head))
              << rule << " " << layers << " " << stages << " " << vocab;
        }
      }
    }
  }
}

// nanotron gives embeddings no cost: a stage is full once its layers alone have exceeded its share of layers and output
// layer, so that a large vocabulary takes layers from the last stage and gives the first more than any other.
TEST(Stages, NanotronsEmbeddingWeighsNothing) {
  const double layer = 4.0 * 64 * 64 + 3.0 * 64 * 256;
  for (const int vocab : {256, 4096, 16384}) {
    for (const int stages : {2, 4}) {
      constexpr int kLayers = 32;
      const double share = (kLayers * layer + 64.0 * vocab) / stages;
      const LayerCut made = cut("by_cost_nanotron", kLayers, stages, 1, vocab);
      EXPECT_EQ(static_cast<double>(made.front()), std::min(std::ceil(share / layer), 1.0 * kLayers - stages + 2))
          << vocab << " " << stages;
      EXPECT_LE(made.back(), made.front());
    }
  }
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
