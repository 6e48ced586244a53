#include "sim/generate/pass_times.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// Predictions that are linear in sequences and in tokens come back at every point.
TEST(PassTimes, AreLinearBetweenPredictions) {
  int predictions = 0;
  const PredictPass predict = {
      .prompts =
          [&](std::int64_t n, std::int64_t input) {
            return ++predictions, PromptTime{1e-3 + 1e-5 * double(n * input), 0.25 + 1e-6 * double(n * input)};
          },
      .decode = [&](std::int64_t n, std::int64_t cached) { return ++predictions, 5e-3 + 1e-8 * double(n * cached); }};
  const ServingLoad load = {
      .clients = 64, .requests = 640, .input = 1000, .output = 500, .sequences = 1000, .cache_bytes = 1'000'000};
  const PassTimes times = pass_times(predict, load);
  EXPECT_EQ(predictions, 3 * 3 + 2);
  for (const double n : {1.0, 7.0, 16.0, 50.0, 64.0}) {
    for (const double context : {1000.0, 1234.0, 1499.0}) {
      EXPECT_NEAR(times.decode(n, context), 5e-3 + 1e-8 * n * context, 1e-12);
      EXPECT_NEAR(times.attention(n, context), 1e-8 * n * (context - 16), 1e-9);
    }
  }
  for (const double tokens : {1000.0, 3000.0, 8000.0}) EXPECT_NEAR(times.prompt(tokens), 1e-3 + 1e-5 * tokens, 1e-12);
  EXPECT_LT(times.prompt(10), times.prompt(1000));
  EXPECT_NEAR(times.launch(2000), 0.252, 1e-12);
  EXPECT_NEAR(times.launch(10), 0.251, 1e-12) << "the least pass";
}

// No pass is predicted whose sequences have no room in the cache.
TEST(PassTimes, AskForNoMoreSequencesThanFit) {
  std::int64_t most = 0;
  const PredictPass predict = {.prompts =
                                   [](std::int64_t, std::int64_t) {
                                     return PromptTime{1, 1};
                                   },
                               .decode =
                                   [&](std::int64_t n, std::int64_t) {
                                     most = std::max(most, n);
                                     return 1.0;
                                   }};
  pass_times(predict,
             {.clients = 64, .requests = 64, .input = 999, .output = 10, .sequences = 1000, .cache_bytes = 5000});
  EXPECT_EQ(most, 5);
}

}  // namespace
}  // namespace orrery
