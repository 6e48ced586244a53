#include "sim/generate/compare_text.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

GenerationReport made_up(double rate) {
  GenerationReport r;
  r.prefill.push_back({});
  r.first_token_s = 0.5;
  r.token_s = 0.02;
  r.total_s = 3;
  r.tokens_per_s = rate;
  r.memory = {.capacity = 100, .allowed = 90, .weights = 40, .cache = 20};
  return r;
}

TEST(ComparedGenerations, HaveARowEach) {
  const GenerationReport slow = made_up(100), fast = made_up(400);
  const std::vector<ComparedGeneration> rows = {{"a", {"1"}, 8, 4, &slow, {}},
                                                {"b", {"2"}, 8, 4, &fast, {}},
                                                {"c", {"3"}, 0, 1, nullptr, "impossible, \"really\""}};
  const Table table = compared_table(rows, {"tensor"});
  ASSERT_EQ(table.rows.size(), 3U);
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
  EXPECT_EQ(table.rows[0][5], "4.00");  // time over that of the best
  EXPECT_EQ(table.rows[1][6], "100");   // tokens per second and GPU
  EXPECT_EQ(table.rows[2].back(), "impossible, \"really\"");
  const std::string csv = compared_csv(rows, {"tensor"});
  EXPECT_NE(csv.find("\"2\",8,0.5,0.02,3,400,100,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\"impossible, \"\"really\"\"\"\n"), std::string::npos) << csv;
}

}  // namespace
}  // namespace orrery
