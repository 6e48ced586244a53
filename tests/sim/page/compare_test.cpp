#include "sim/page/compare.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

Report report_of(double step_s, bool fits) {
  Report r;
  r.step_time_s = step_s;
  r.tokens_per_s = 1000 / step_s;
  r.time_s[static_cast<std::size_t>(TimeKind::compute)] = step_s;
  r.memory.fits = fits;
  r.limit = "compute 100 %";
  return r;
}

TEST(Differences, OnlyKeysWithSeveralValues) {
  const std::vector<ComparedSpec> specs = {
      {"a", nullptr, "", {{"gpus", "8", "default"}, {"tensor", "1", "default"}}},
      {"b", nullptr, "", {{"gpus", "8", "default"}, {"tensor", "2", "default"}, {"expert", "4", "default"}}},
      {"unreadable", nullptr, "no such file", {}}};
  const Table t = differences(specs);
  ASSERT_EQ(t.rows.size(), 2U);
  EXPECT_EQ(t.rows[0], (std::vector<std::string>{"tensor", "1", "2", "-"}));
  EXPECT_EQ(t.rows[1], (std::vector<std::string>{"expert", "-", "4", "-"}));
  EXPECT_TRUE(differences({specs[0], specs[0]}).rows.empty());
  EXPECT_TRUE(differences(std::vector<ComparedSpec>(8, specs[0])).rows.empty());
}

TEST(Differences, ManySpecsAreRows) {
  std::vector<ComparedSpec> specs;
  for (int i = 0; i < 8; ++i)
    specs.push_back({std::to_string(i), nullptr, "", {{"gpus", std::to_string(i), "default"}}});
  const Table t = differences(specs);
  ASSERT_EQ(t.rows.size(), 8U);
  EXPECT_EQ(t.columns[1].name, "gpus");
  EXPECT_EQ(t.rows[7], (std::vector<std::string>{"7", "7"}));
}

TEST(ComparePage, ShowsTheFastestThatFitsAndReasons) {
  const Report fast = report_of(1, false), slow = report_of(2, true);
  ComparePage page{
      .table = {{{"spec", "", Align::left}, {"step"}}, {{"fast", "1.00 s"}, {"slow", "2.00 s"}, {"none", ""}}}};
  page.specs = {{"fast", &fast, "", {}}, {"slow", &slow, "", {}}, {"none", nullptr, "x & y cannot be", {}}};
  const std::string markup = compare_page(page);
  EXPECT_TRUE(is_closed(markup));
  EXPECT_TRUE(has(markup, "of those that fit: slow"));
  EXPECT_TRUE(has(markup, "1.00 s, does not fit"));
  EXPECT_TRUE(has(markup, "x &amp; y cannot be"));
  const std::string best = "id=\"1.report.step_time_s\" value=\"2\"";  // in the cards alone: ids are unique
  EXPECT_TRUE(has(markup, best));
  EXPECT_EQ(markup.find(best), markup.rfind(best));
  EXPECT_FALSE(has(markup, "id=\"best."));
  EXPECT_FALSE(has(markup, "95 % below"));
  page.specs = {{"fast", &fast, "", {}}};
  EXPECT_TRUE(has(compare_page(page), "None of the specs fits"));
}

TEST(ComparePage, ShowsWhatClustersStayBelowWhereGpusDiffer) {
  Report even = report_of(1, true), differing = report_of(2, true);
  differing.variation = StepQuantiles{2.05, 2.25};
  ComparePage page{.table = {{{"spec", "", Align::left}, {"step"}}, {{"even", "1.00 s"}, {"differing", "2.00 s"}}}};
  page.specs = {{"even", &even, "", {}}, {"differing", &differing, "", {}}};
  const std::string markup = compare_page(page);
  EXPECT_TRUE(is_closed(markup));
  EXPECT_TRUE(has(markup, "95 % below") && has(markup, "2.25 s"));
}

}  // namespace
}  // namespace orrery
