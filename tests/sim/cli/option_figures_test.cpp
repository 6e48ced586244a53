#include "sim/cli/option_figures.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string figure(std::string text, std::string_view unit = "", double most = 1e18) {
  const std::string refusal = read_figure(text, {"X", unit, most});
  return refusal.empty() ? text : refusal;
}

TEST(OptionFigures, HaveTheUnitsOfASpec) {
  EXPECT_EQ(figure("15T"), "15000000000000");
  EXPECT_EQ(figure("30 M"), "30000000");
  EXPECT_EQ(figure("36 h", "days"), "1.5");
  EXPECT_EQ(figure("80", "GiB"), "80");
  EXPECT_EQ(figure("2 TiB", "GiB"), "2048");
  std::string count = "2k";
  EXPECT_EQ(read_count(count, {"N", "", 1e7}), "");
  EXPECT_EQ(count, "2000");
}

TEST(OptionFigures, RefuseWhatIsNone) {
  for (const char* text : {"-1", "0", "nan", "inf", "-inf", "1e999", "", "x", "15 parsecs", "1e19", "3 GiB"})
    EXPECT_NE(figure(text).find("' is no X above 0 and at most 1e+18"), std::string::npos) << text;
  std::string part = "2.5", most = "1e8";
  EXPECT_EQ(read_count(part, {"N", "", 1e7}), "'2.5' is no whole number above 0 and at most 1e+07");
  EXPECT_NE(read_count(most, {"N", "", 1e7}), "");
  EXPECT_LT(figure(std::string(5000, 'x')).size(), 100U);
}

}  // namespace
}  // namespace orrery
