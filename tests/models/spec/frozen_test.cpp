#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

std::int64_t trained(const Model& m) {
  std::int64_t sum = 0;
  const auto add = [&](const std::vector<Parameter>& list) {
    for (const Parameter& p : list) sum += is_frozen(m, p.name) ? 0 : elements(p);
  };
  add(embedding_parameters(m, 32));
  for (std::int64_t l = 0; l < m.layers; ++l) add(layer_parameters(m, l));
  add(head_parameters(m));
  return sum;
}

Model model(const std::string& more) { return test::spec_of(std::string(test::kSmall) + more, "").model; }

// Adapters train r (in + out) weights beside each linear layer (Hu et al. 2021), and nothing else trains.
TEST(Frozen, AdaptersTrainTheirRanks) {
  const std::int64_t h = 64, qkv = 3 * 64, up = 2 * 256, down = 256;
  EXPECT_EQ(trained(model(", lora: {rank: 4}")), 8 * 4 * ((h + qkv) + (h + h) + (h + up) + (down + h)));
  EXPECT_EQ(trained(model(", lora: {rank: 16, targets: [qkv]}")), 8 * 16 * (h + qkv));
  EXPECT_EQ(trained(model(", lora: {rank: 2, targets: mlp}, gated: false")), 8 * 2 * (2 * (h + down)));
}

TEST(Frozen, PartsAreLeftOut) {
  const Model all = model("");
  const std::int64_t norms = 8 * 2 * 64 + 64;
  EXPECT_EQ(trained(all), parameter_count(all, 32));
  EXPECT_EQ(trained(model(", frozen: [norm]")), trained(all) - norms);
  EXPECT_EQ(trained(model(", frozen: [embedding]")), trained(all) - 256 * 64);
  EXPECT_EQ(trained(model(", frozen: [embedding, head, attention, mlp]")), norms);
  EXPECT_EQ(trained(model(", frozen: [embedding], tied_embeddings: true")), trained(all) - 2 * 256 * 64);
}

TEST(Frozen, BackwardEndsBelowTheFirstThatTrains) {
  EXPECT_TRUE(trains_below(model(""), 0));
  EXPECT_TRUE(trains_below(model(", frozen: [mlp]"), 0));
  EXPECT_FALSE(trains_below(model(", frozen: [embedding]"), 0));
  EXPECT_TRUE(trains_below(model(", frozen: [embedding]"), 1));
  EXPECT_FALSE(trains_below(model(", lora: {rank: 4}"), 0));
  EXPECT_FALSE(trains_below(model(", frozen: [embedding, attention, mlp, norm]"), 8));
}

// QLoRA (Dettmers et al. 2023, section 3): 4 bits, 8 / 64 and 32 / (64 * 256) for scales.
TEST(Frozen, Nf4TakesItsBits) {
  const std::int64_t n = std::int64_t{64} * 256 * 100;
  EXPECT_DOUBLE_EQ(8.0 * static_cast<double>(nf4_bytes(n)) / static_cast<double>(n), 4 + 8.0 / 64 + 32.0 / (64 * 256));
  EXPECT_EQ(nf4_bytes(1), 1 + 1 + 4);
}

}  // namespace
}  // namespace orrery
