#include "sim/report/validated_rows.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/load/load_spec.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec small(const std::string& strategy) { return test::spec_of(test::kSmall, strategy); }

TEST(ValidatedRows, ALikeStepIsNoDistanceAway) {
  const ValidatedRow a = described(small("tensor: 2, data: 4")), b = described(small("tensor: 4, data: 2"));
  EXPECT_EQ(distance(a, a), 0);
  EXPECT_EQ(distance(a, b), 1);  // as many GPUs, twice the tensor ranks
  EXPECT_EQ(distance(a, b), distance(b, a));
  EXPECT_EQ(distance(a, described(small("tensor: 2, data: 4, sharding: zero1"))), 1);
}

TEST(ValidatedRows, AreWrittenAsTheyAreRead) {
  ValidatedRow row = described(small("tensor: 2"));
  row.source = "papers";
  row.id = "papers/1";
  row.error = -0.0312;
  const auto file = nlohmann::json::parse(validated_rows_json({row, row}));
  ASSERT_EQ(file.at("rows").size(), 2U);
  EXPECT_EQ(file.at("rows")[0], file.at("rows")[1]);
  EXPECT_EQ(file.at("rows")[0].back(), -0.0312);
  EXPECT_EQ(nlohmann::json::parse(data_file("validated_rows.json")).at("rows")[0].size(), file.at("rows")[0].size());
}

TEST(ValidatedRows, NearestComesFirst) {
  const Spec spec = parse_spec(
      "model: llama-3.1-8b\nsequence: 4096\nsoftware: nanotron\ncluster: {node: dgx-h100, nodes: 1}\n"
      "strategy: {tensor: 2, sharding: zero1}\n",
      "test");
  const auto rows = nearest_rows(spec, 5);
  ASSERT_EQ(rows.size(), 5U);
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_LE(distance(described(spec), rows[i - 1]), distance(described(spec), rows[i]));
  EXPECT_EQ(rows[0].software, "nanotron");
  EXPECT_EQ(rows[0].gpu, "hopper");
}

}  // namespace
}  // namespace orrery
