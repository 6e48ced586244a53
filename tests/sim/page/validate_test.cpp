#include "sim/page/validate.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(ValidatePage, PlotsComeBeforeTables) {
  PagePlot plot{"Step time", {.x_name = "measured", .y_name = "predicted"}, "dashes"};
  plot.scatter.points = {{1, 1, 0, "a"}};
  const std::string page = validate_page({.title = "T",
                                          .plots = {plot, {"empty", {}, ""}},
                                          .sections = {{"Errors", {"line"}, {}, {}}},
                                          .version = "orrery test"});
  EXPECT_TRUE(is_closed(page));
  EXPECT_LT(page.find("<svg"), page.find("<h2>Errors</h2>"));
  EXPECT_FALSE(has(page, "<h2>empty</h2>"));
}

// Doubtful rows and those without a prediction have no point.
TEST(ValidatePage, PublishedRowsAreSeriesOfSources) {
  std::vector<PublishedCase> cases(4);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].row.id = std::to_string(i);
    cases[i].row.source = i < 2 ? "one" : "two";
    cases[i].row.step_time_s = 1.0 + static_cast<double>(i);
    cases[i].step_time_s = 1;
  }
  cases[1].row.doubtful = "no";
  cases[3].row.peak_memory_bytes = 3221225472.0;
  cases[3].peak_memory_bytes = 1073741824.0;
  cases.push_back(cases[0]);
  cases.back().reason = "not supported";
  const std::vector<PagePlot> plots = published_plots(cases);
  ASSERT_EQ(plots.size(), 2U);
  EXPECT_EQ(plots[0].scatter.series, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(plots[0].scatter.points.size(), 3U);
  EXPECT_EQ(plots[0].scatter.points[1].series, 1U);
  ASSERT_EQ(plots[1].scatter.points.size(), 1U);
  EXPECT_DOUBLE_EQ(plots[1].scatter.points[0].x, 3);
}

TEST(ValidatePage, ServedFiguresHaveAPlotEach) {
  const ServedRow row{.id = "a", .framework = "vLLM 0.9"};
  const std::vector<ServedCase> cases = {{&row, {{"tokens/s", 2, 1}, {"ttft", 3, 4}}, ""},
                                         {&row, {{"tokens/s", 5, 6}}, ""}};
  const std::vector<PagePlot> plots = served_plots(cases);
  ASSERT_EQ(plots.size(), 2U);
  EXPECT_EQ(plots[0].title, "tokens/s");
  EXPECT_EQ(plots[0].scatter.points.size(), 2U);
  EXPECT_EQ(plots[0].scatter.series, (std::vector<std::string>{"vLLM"}));
}

}  // namespace
}  // namespace orrery
