#include "sim/page/colours.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace orrery {
namespace {

TEST(Colours, AreDifferentWithinASet) {
  std::set<std::string_view> kinds, categories, series;
  for (int k = 0; k < kTimeKinds; ++k) kinds.insert(colour_of(static_cast<TimeKind>(k)));
  for (int c = 0; c < kCategories; ++c) categories.insert(colour_of(static_cast<Category>(c)));
  for (std::size_t s = 0; s < 8; ++s) series.insert(chart_colour(s));
  EXPECT_EQ(kinds.size(), std::size_t{kTimeKinds});
  EXPECT_EQ(categories.size(), std::size_t{kCategories});
  EXPECT_EQ(series.size(), 8U);
  EXPECT_EQ(chart_colour(9), chart_colour(1));
}

}  // namespace
}  // namespace orrery
