#include "models/spec/documents.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec packed(const Documents& documents, const std::string& strategy = "global_batch: 64") {
  Spec spec = test::spec_of(test::kSmall, strategy, 1024);
  spec.documents = documents;
  return spec;
}

TEST(Documents, FillEverySampleAlike) {
  const Spec spec = packed({.mean = 100, .max = 300});
  std::set<std::vector<std::int64_t>> seen;
  for (std::int64_t sample = 0; sample < 64; ++sample) {
    const std::vector<std::int64_t> lengths = documents_of(spec, sample);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), 1024);
    for (const std::int64_t l : lengths) EXPECT_TRUE(l >= 1 && l <= 300);
    EXPECT_EQ(lengths, documents_of(spec, sample));
    seen.insert(lengths);
  }
  EXPECT_EQ(seen.size(), 64U);
  Spec other = spec;
  other.seed = 5;
  EXPECT_NE(documents_of(other, 0), documents_of(spec, 0));
}

// The lengths of many documents have the mean of an exponential one that is cut at the longest.
TEST(Documents, HaveTheirMean) {
  Spec spec = packed({.mean = 50, .max = 1000});
  spec.sequence = 1'000'000;
  const auto n = static_cast<double>(documents_of(spec, 3).size());
  EXPECT_NEAR(1e6 / n, 50, 1);
}

TEST(Documents, PairsAreThoseOfEachAlone) {
  const Spec halves = packed({.histogram = {{512, 1.0}}});
  EXPECT_DOUBLE_EQ(document_pairs(halves, 0, false).mean, 2 * 512 * 513 / 2.0);
  EXPECT_DOUBLE_EQ(document_pairs(halves, 0, true).busiest, 512 * 512.0);
  EXPECT_DOUBLE_EQ(document_pairs(halves, 64, false).mean, 2 * (64 * 65 / 2.0 + (512 - 64) * 64));
  // A document that fills the sample is the sample.
  const Spec whole = packed({.histogram = {{1024, 1.0}}});
  EXPECT_DOUBLE_EQ(document_pairs(whole, 0, true).mean, 1024 * 1024 / 2.0);
  EXPECT_DOUBLE_EQ(document_pairs(whole, 0, false).mean, pairs_of_document(1024, 0));
}

TEST(Documents, TheBusiestRankHasMorePairsThanTheMean) {
  const Spec spec = packed({.mean = 200, .max = 1024}, "data: 8, global_batch: 64");
  const DocumentPairs pairs = document_pairs(spec, 0, true);
  EXPECT_GT(pairs.busiest, pairs.mean * 1.02);
  const DocumentPairs alone = document_pairs(packed({.mean = 200, .max = 1024}, "data: 1, global_batch: 64"), 0, true);
  EXPECT_DOUBLE_EQ(alone.busiest, alone.mean);
  EXPECT_DOUBLE_EQ(alone.mean, pairs.mean);
}

}  // namespace
}  // namespace orrery
