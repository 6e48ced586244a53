#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/commands.h"

namespace orrery {
namespace {

// Every built-in recipe is planned and simulated. What it comes to is within 30 % of what was published: the sources
// leave layouts, software and clocks half said, and PaLM ran on other devices.
TEST(CommandValidateRecipes, AreNearWhatWasPublished) {
  Common common;
  common.json = true;
  common.progress = [](std::string_view) {};
  const auto rows = nlohmann::json::parse(validate_recipes_command(common).text);
  EXPECT_GE(rows.size(), 9U);
  for (const auto& row : rows) {
    EXPECT_LT(std::abs(row.at("error").get<double>()), 0.3) << row.at("name");
    EXPECT_GT(row.at("report").at("step_time_s").get<double>(), 0) << row.at("name");
  }
  common.json = false;
  const std::string text = validate_recipes_command(common).text;
  for (const auto& row : rows) EXPECT_NE(text.find(row.at("name").get<std::string>()), std::string::npos);
}

}  // namespace
}  // namespace orrery
