#include "models/base/quantile.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Quantile, ASharesNearestValue) {
  EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 0), 1);
  EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 0.5), 3);
  EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 0.6), 3);
  EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 0.7), 4);
  EXPECT_EQ(quantile({5, 1, 3, 2, 4}, 1), 5);
  EXPECT_EQ(quantile({1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

TEST(Quantile, TheMedianOfAnEvenNumberLiesBetweenTwoValues) {
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({9, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({}), 0);
}

}  // namespace
}  // namespace orrery
