// The combinations of parallel degrees that a search tries.
#include <set>

#include <gtest/gtest.h>

#include "sim/search/space.h"

namespace orrery {
namespace {

std::vector<RankLayout> layouts_of(const std::string& model, const std::string& sequence, std::int64_t gpus) {
  const std::string text =
      fmt::format("model: {}\nsequence: {}\ncluster: {{node: dgx-h100, nodes: 2}}\nstrategy: {{global_batch: 16}}\n",
                  model, sequence);
  return Space(parse_open_spec(text, "t.yaml"), gpus).layouts();
}

constexpr const char* kSees =
    "{name: small, layers: 4, hidden: 64, heads: 8, feed_forward: 64, vocab: 64, "
    "vision: {layers: 1, hidden: 48, heads: 4, feed_forward: 64, merge: 2}}";

TEST(SearchLayouts, UseAllGpus) {
  std::set<std::int64_t> tensors;
  for (const RankLayout& l : layouts_of("llama-3.1-8b", "4096", 16)) {
    EXPECT_EQ(l.tensor * l.context * l.pipeline * l.data, 16);
    EXPECT_EQ(l.data * l.micro_batch * l.micro_batches, 16);
    tensors.insert(l.tensor);
  }
  EXPECT_EQ(tensors, (std::set<std::int64_t>{1, 2, 4, 8, 16}));
}

TEST(SearchLayouts, ExpertsTakePartOfTheRanks) {
  bool spread = false;
  for (const RankLayout& l : layouts_of("mixtral-8x7b", "4096", 16)) {
    EXPECT_EQ(l.tensor * l.replicas() % (l.expert * l.expert_tensor), 0);
    EXPECT_EQ(8 % l.expert, 0);
    spread |= l.expert > 1 && l.expert_tensor > 1;
  }
  EXPECT_TRUE(spread);
}

// The encoder has 4 heads, so 8 tensor ranks cannot cut it; no context ranks divide images.
TEST(SearchLayouts, CutTheEncoderWhereSamplesHaveImages) {
  const auto has = [](const std::vector<RankLayout>& layouts, auto member, std::int64_t value) {
    return std::any_of(layouts.begin(), layouts.end(), [&](const RankLayout& l) { return l.*member == value; });
  };
  const std::vector<RankLayout> seeing = layouts_of(kSees, "{length: 64, images: {count: 1, patches: 16}}", 8);
  const std::vector<RankLayout> blind = layouts_of(kSees, "64", 8);
  EXPECT_TRUE(has(seeing, &RankLayout::tensor, 4));
  EXPECT_FALSE(has(seeing, &RankLayout::tensor, 8) || has(seeing, &RankLayout::context, 2));
  EXPECT_TRUE(has(blind, &RankLayout::tensor, 8) && has(blind, &RankLayout::context, 2));
}

}  // namespace
}  // namespace orrery
