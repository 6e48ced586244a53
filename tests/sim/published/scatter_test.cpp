#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/published/predict.h"

namespace orrery {
namespace {

PublishedCase step_of(double measured, double predicted) {
  PublishedCase c;
  c.row.source = "steps";
  c.row.step_time_s = measured;
  c.step_time_s = predicted;
  return c;
}

std::vector<std::pair<double, double>> dots_of(const std::string& svg) {
  const std::regex dot("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\" r=\"2.5\">");
  std::vector<std::pair<double, double>> result;
  for (auto m = std::sregex_iterator(svg.begin(), svg.end(), dot); m != std::sregex_iterator(); ++m)
    result.emplace_back(std::stod((*m)[1]), std::stod((*m)[2]));
  return result;
}

// Every step is drawn at its place, however short or long, and none at the frame instead.
TEST(PublishedScatter, ShowsEveryStepWhereItIs) {
  const auto dots = dots_of(scatter_svg({step_of(0.01, 0.011), step_of(0.02, 0.02), step_of(3000, 2500)}));
  ASSERT_EQ(dots.size(), 3U);
  EXPECT_LT(dots[0].first, dots[1].first);
  EXPECT_LT(dots[1].first, dots[2].first);
  EXPECT_GT(dots[0].second, dots[1].second);
  EXPECT_GT(dots[1].second, dots[2].second);
  EXPECT_NEAR(dots[1].first - 70, 30 + 640 - dots[1].second, 0.2) << "on the diagonal";
}

TEST(PublishedScatter, LeavesOutWhatIsNotCompared) {
  PublishedCase doubtful = step_of(1, 2), unsupported = step_of(1, 0), memory = step_of(1, 1);
  doubtful.row.doubtful = "neighbours contradict it";
  unsupported.reason = "not supported";
  memory.row.step_time_s.reset();
  EXPECT_TRUE(dots_of(scatter_svg({doubtful, unsupported, memory})).empty());
}

}  // namespace
}  // namespace orrery
