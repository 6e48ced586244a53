#include "exec/host/logit_rows.h"

#include <cmath>

#include <gtest/gtest.h>

namespace orrery {
namespace {

Execution with_logits(std::vector<std::int64_t> tokens, std::vector<std::vector<float>> rows) {
  Execution e;
  e.generated = {{7, std::move(tokens)}};
  for (std::size_t i = 0; i < rows.size(); ++i) e.logits.push_back({7, static_cast<std::int64_t>(i), rows[i]});
  return e;
}

// The narrow model went on with the wide one's tokens, so that rows behind a different choice are of the same text too.
TEST(LogitRows, CompareAllRowsOfOneText) {
  const Execution wide = with_logits({2, 0, 1}, {{0, 1, 3}, {4, 1, 1}, {0, 2, 1}});
  const Execution narrow = with_logits({2, 1, 1}, {{0, 1, 2}, {1, 2, 1}, {0, 2, 1}});
  const std::vector<LogitRow> rows = logit_rows(wide, narrow);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].sequence, 7);
  EXPECT_EQ(rows[1].position, 1);
  EXPECT_TRUE(rows[0].same_token);
  EXPECT_FALSE(rows[1].same_token);
  EXPECT_TRUE(rows[2].same_token);
  EXPECT_EQ(rows[0].columns, 3);
  EXPECT_DOUBLE_EQ(rows[1].distance, 4);
  EXPECT_DOUBLE_EQ(rows[1].furthest, 3);
  EXPECT_DOUBLE_EQ(rows[0].wide_largest, 3);
  EXPECT_DOUBLE_EQ(rows[0].wide_sum, std::exp(-3.0) + std::exp(-2.0) + 1);
  EXPECT_DOUBLE_EQ(rows[0].weighted, 1);
}

}  // namespace
}  // namespace orrery
