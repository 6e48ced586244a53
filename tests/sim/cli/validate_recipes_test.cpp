#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/cli/commands.h"

namespace orrery {
namespace {

// Every built-in recipe is planned and simulated. The result is within 30 % of the published figure: the sources state
// layouts, software and clocks only partly, and PaLM ran on other devices.
TEST(CommandValidateRecipes, AreNearWhatWasPublished) {
  Common common;
  common.json = true;
  common.progress = [](std::string_view) {};
  const auto rows = nlohmann::json::parse(validate_recipes_command(common).text);
  EXPECT_GE(rows.size(), 9U);
  for (const auto& row : rows) {
    const auto error = row.at("error").get<double>();
    // Whether the paper counts all of the attention matrix or its causal half is not said: 0.714 of the figure.
    if (row.at("name") == "llama-3.1-405b-128k") {
      EXPECT_GT(1 + error, 1);
      EXPECT_LT(0.714 * (1 + error), 1);
      continue;
    }
    EXPECT_LT(std::abs(error), 0.3) << row.at("name");
    EXPECT_GT(row.at("report").at("step_time_s").get<double>(), 0) << row.at("name");
  }
  common.json = false;
  common.page = true;
  const Outcome outcome = validate_recipes_command(common);
  for (const auto& row : rows) {
    EXPECT_NE(outcome.text.find(row.at("name").get<std::string>()), std::string::npos);
    EXPECT_NE(outcome.page.find(row.at("name").get<std::string>()), std::string::npos);
  }
  EXPECT_NE(outcome.page.find("predicted step time, s"), std::string::npos);
}

}  // namespace
}  // namespace orrery
