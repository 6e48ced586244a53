#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/published/fit.h"

namespace orrery {
namespace {

Refit small_refit() {
  Refit refit;
  refit.numbers = fitted_numbers();
  refit.sources = {{.source = "paper",
                    .rows = 3,
                    .in_sample = 0.02,
                    .left_out = 0.05,
                    .halves = 0.03,
                    .left_out_bias = -0.04,
                    .numbers = fitted_numbers()}};
  refit.rows = 3;
  refit.ratios = {1.05, std::nullopt};
  return refit;
}

TEST(FitText, HasALineForEverySource) {
  const std::string text = refit_text(small_refit(), {});
  EXPECT_NE(text.find("paper"), std::string::npos);
  EXPECT_NE(text.find("-4.0"), std::string::npos);
  EXPECT_NE(text.find("mean over sources"), std::string::npos);
}

TEST(FitText, JsonHasTheRatiosOfAllSteps) {
  const auto json = nlohmann::json::parse(refit_json(small_refit(), {}));
  EXPECT_EQ(json.at("sources").size(), 1U);
  EXPECT_EQ(json.at("ratios").at(0), 1.05);
  EXPECT_TRUE(json.at("ratios").at(1).is_null());
}

}  // namespace
}  // namespace orrery
