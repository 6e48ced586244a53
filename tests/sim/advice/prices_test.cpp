#include "sim/advice/prices.h"

#include <gtest/gtest.h>

#include <fstream>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

TEST(Prices, ReadsEveryKeyOfAPriceListAndRefusesOthers) {
  const PriceList prices = load_prices({});
  const Price* h100 = prices.find("h100-sxm");
  ASSERT_NE(h100, nullptr);
  EXPECT_TRUE(h100->cloud_low && h100->cloud_high && h100->uncertain && !h100->source.empty());
  const test::TemporaryFolder folder;
  const std::string path = folder.path("prices.json");
  const auto refusal = [&](const char* row) {
    std::ofstream(path) << R"({"date": "2026-01-01", "rows": [)" << row << "]}";
    try {
      load_prices({.file = path});
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(refusal(R"({"gpu": "x", "cloud_usd": 2})"), "");
  EXPECT_NE(refusal(R"({"gpu": "x", "cloud_us": 2})").find("row 1: unknown key cloud_us; did you mean cloud_usd"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"gpu": "x", "purchase_usd": 2})").find("needs purchase_gpus"), std::string::npos);
  EXPECT_EQ(load_prices({.usd_per_kWh = 0.2, .write_off_years = 3}).usd_per_kWh, 0.2);
  EXPECT_EQ(load_prices({.usd_per_kWh = 0.2, .write_off_years = 3}).write_off_years, 3);
  EXPECT_NE(refusal(R"({"gpu": "x", "cloud_usd": -2})").find("not above 0"), std::string::npos);
}

}  // namespace
}  // namespace orrery
