#include "kernels/cpu/token_choice.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::kernels {
namespace {

TEST(TokenChoice, KeysAreInTheOrderOfLogits) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {-infinite, -3e38F, -2.5F, -1e-40F, 0, 1e-40F, 1, 1.0000001F, 3e38F, infinite};
  for (std::size_t i = 1; i < logits.size(); ++i) {
    const double less = token_key(logits[i - 1], 0), more = token_key(logits[i], 200'000);
    EXPECT_LT(less, more) << logits[i];
    EXPECT_TRUE(std::isfinite(more) && less >= 0);
  }
  EXPECT_EQ(token_key(std::nanf(""), 5), token_key(-infinite, 5));
}

TEST(TokenChoice, OfEqualLogitsTheLowestTokenWins) {
  EXPECT_GT(token_key(1.5F, 3), token_key(1.5F, 4));
  for (const std::int64_t token : {0, 1, 128'255, 2'147'483'647}) EXPECT_EQ(token_of(token_key(-0.25F, token)), token);
}

TEST(TokenChoice, PaddingIsNeverChosen) {
  std::vector<float> logits = {1, 3, 3, 9, 2, 1, 0, 9};
  std::vector<double> keys(2);
  best_tokens(matrix<const float>(logits.data(), 2, 4), {.first = 8, .vocabulary = 11}, keys.data());
  EXPECT_EQ(token_of(keys[0]), 9);
  EXPECT_EQ(token_of(keys[1]), 8);
  best_tokens(matrix<const float>(logits.data(), 2, 4), {.first = 12, .vocabulary = 11}, keys.data());
  EXPECT_EQ(keys[0], 0);
}

}  // namespace
}  // namespace orrery::kernels
