#include "models/layers/expert_sizes.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/models/plans.h"
#include "tests/random_bits.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

Spec spec_with(const std::string& moe, const std::string& strategy) {
  return test::spec_of("name: moe, layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 64, moe: {" + moe + "}",
                       strategy);
}

struct SizesRow {
  const char* moe;
  std::int64_t expert, tokens, capacity, sent, received;
};
// Uniform: what goes out comes in, k rows a token, or experts * capacity.
constexpr SizesRow kSizesOfModels[] = {
    {"experts: 8, top_k: 2, feed_forward: 64", 1, 96, 0, 192, 192},
    {"experts: 8, top_k: 2, feed_forward: 64", 4, 96, 0, 192, 192},
    {"experts: 8, top_k: 2, feed_forward: 64, capacity_factor: 1", 4, 96, 24, 192, 192},
    {"experts: 8, top_k: 2, feed_forward: 64, capacity_factor: 0.5", 4, 96, 12, 96, 96},
    {"experts: 8, top_k: 2, feed_forward: 64, capacity_factor: 2, pad_to_capacity: true", 4, 96, 48, 384, 384},
    {"experts: 8, top_k: 2, feed_forward: 64, capacity_factor: 1, pad_to_capacity: true", 8, 97, 25, 200, 200},
    {"experts: 8, top_k: 2, feed_forward: 64, imbalance: 1.5", 4, 96, 0, 192, 288},
    {"experts: 8, top_k: 2, feed_forward: 64, imbalance: 1.5, capacity_factor: 1", 4, 96, 24, 168, 192},
};

TEST(ExpertSizes, FollowCapacityAndLoad) {
  for (const SizesRow& row : kSizesOfModels) {
    const Spec spec = spec_with(row.moe, fmt::format("data: 8, expert: {}, global_batch: 8", row.expert));
    const ExpertSizes s = expert_sizes(spec, 0, row.tokens);
    SCOPED_TRACE(row.moe);
    EXPECT_EQ(s.capacity, row.capacity);
    EXPECT_EQ(s.sent, row.sent);
    EXPECT_EQ(s.received, row.received);
    EXPECT_LE(s.sent, s.sent_bound);
    EXPECT_LE(s.received, s.received_bound);
  }
}

TEST(ExpertSizes, ZipfLoadsTheFirstExperts) {
  const Spec spec =
      spec_with("experts: 8, top_k: 2, feed_forward: 64, imbalance: {zipf: 1}", "data: 4, expert: 4, global_batch: 4");
  double all = 0;
  for (int i = 1; i <= 8; ++i) all += 1.0 / i;
  const ExpertSizes s = expert_sizes(spec, 0, 1000);
  // Expert 0 would get 736 of 2,000 choices; a token chooses it at most once.
  EXPECT_EQ(s.received, std::llround(4 * 2000 * (1 + 0.5) / all));
}

TEST(ExpertSizes, AFileGivesEachLayerItsLoads) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("loads.json");
  std::ofstream(path) << "[[1, 1, 1, 1], [3, 1, 0, 0]]";
  const std::string moe = "experts: 4, top_k: 1, feed_forward: 64, imbalance: " + path;
  const Spec spec = spec_with(moe, "data: 2, expert: 2, global_batch: 2");
  EXPECT_EQ(expert_sizes(spec, 0, 100).received, 100);
  EXPECT_EQ(expert_sizes(spec, 1, 100).received, 200);
}

// The number of parts (groups of ranks) that hold a token's experts, over top_k: 1 / top_k with one part, and 1 with a
// part per expert; computed by hand where the experts are of few groups.
TEST(ExpertSizes, PartsThatATokensExpertsMeet) {
  Moe moe;
  moe.experts = 64;
  moe.top_k = 8;
  EXPECT_DOUBLE_EQ(parts_met(moe, 1), 1.0 / 8);
  EXPECT_NEAR(parts_met(moe, 64), 1, 1e-12);
  const double any = parts_met(moe, 8);
  moe.expert_groups = 8;
  moe.top_groups = 8;
  EXPECT_NEAR(parts_met(moe, 8), any, 1e-12);
  moe.top_groups = 1;
  EXPECT_DOUBLE_EQ(parts_met(moe, 8), 1.0 / 8);
  EXPECT_DOUBLE_EQ(parts_met(moe, 4), 1.0 / 8);
  moe.top_groups = 2;  // two groups of eight; of four parts with two groups each both are in one with chance 1/7
  const double one = 1 - 1.0 / 12870;  // probability that one of the two has any: C(16, 8) choices
  EXPECT_NEAR(parts_met(moe, 4) * 8, 1.0 / 7 + 6.0 / 7 * 2 * one, 1e-9);
  moe.top_groups = 4;
  EXPECT_LT(parts_met(moe, 8), 0.75 * any);
}

// Parts that cut groups of experts, like DeepSeek-V2's over 40 and 80 ranks: compared with a million tokens drawn at
// random.
TEST(ExpertSizes, PartsThatCutGroups) {
  Moe moe;
  moe.experts = 160;
  moe.top_k = 6;
  moe.expert_groups = 8;
  moe.top_groups = 3;
  for (const auto& [parts, drawn] : {std::pair{5, 0.477}, {10, 0.610}, {3, 0.384}})
    EXPECT_NEAR(parts_met(moe, parts), drawn, 0.003) << parts;
}

Moe chosen_by(double zipf, std::int64_t experts = 128, std::int64_t top_k = 8) {
  Moe moe;
  moe.experts = experts;
  moe.top_k = top_k;
  moe.zipf = zipf;
  return moe;
}

TEST(ExpertsMet, OneTokenMeetsAsManyAsItChooses) {
  for (const double zipf : {0.0, 0.9, 1.5, 3.0}) {
    const Moe moe = chosen_by(zipf);
    EXPECT_NEAR(experts_met(moe, 1), 8, 1e-6) << zipf;
    EXPECT_LE(experts_met(moe, 1e9), 128 + 1e-9) << zipf;
    EXPECT_GT(experts_met(moe, 16), experts_met(moe, 8)) << zipf;
  }
  EXPECT_NEAR(experts_met(chosen_by(0), 16), 128 * (1 - std::pow(1 - 8.0 / 128, 16)), 1e-6);
  EXPECT_NEAR(experts_met(chosen_by(0.9, 8, 8), 1), 8, 1e-9);
}

// Tokens that draw experts by their popularity until they have top_k different ones.
TEST(ExpertsMet, IsWhatDrawsWithoutReplacementMeet) {
  constexpr int kTrials = 400, kTokens = 8;
  for (const double zipf : {0.5, 0.9, 1.5}) {
    const Moe moe = chosen_by(zipf);
    std::vector<double> up_to(128);
    for (std::size_t e = 0; e < 128; ++e) up_to[e] = std::pow(static_cast<double>(e + 1), -zipf);
    std::partial_sum(up_to.begin(), up_to.end(), up_to.begin());
    std::uint64_t counter = 0;
    double met = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<bool> seen(128, false);
      for (int token = 0; token < kTokens; ++token) {
        std::vector<bool> own(128, false);
        for (int k = 0; k < 8;) {
          const double at = static_cast<double>(test::random_bits(++counter) >> 11) * 0x1p-53 * up_to.back();
          const auto e = static_cast<std::size_t>(std::upper_bound(up_to.begin(), up_to.end(), at) - up_to.begin());
          if (e >= 128 || own[e]) continue;
          own[e] = true;
          ++k;
          if (!seen[e]) met += 1.0 / kTrials;
          seen[e] = true;
        }
      }
    }
    EXPECT_NEAR(experts_met(moe, kTokens) / met, 1, 0.02) << zipf;
  }
}

TEST(ExpertsMet, FollowsAFileOfCounts) {
  Moe moe = chosen_by(0, 4, 1);
  moe.zipf.reset();
  moe.loads = std::make_shared<ExpertLoads>(ExpertLoads{{1, 1, 0, 0}, {10, 10, 0, 0}});
  EXPECT_NEAR(experts_met(moe, 1000), 2, 1e-6);
  EXPECT_EQ(local_experts_met(moe, 2, 1000), 1);
  EXPECT_EQ(local_experts_met(chosen_by(0), 16, 1e9), 16);
}

}  // namespace
}  // namespace orrery
