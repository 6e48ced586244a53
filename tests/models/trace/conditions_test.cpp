#include "models/trace/conditions.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"

namespace orrery {
namespace {

Conditions sample() {
  return {.during = "bench",
          .samples = 40,
          .sm_low_MHz = 1500,
          .sm_MHz = 1740,
          .sm_high_MHz = 1980,
          .memory_MHz = 2619,
          .power_W = 689.5,
          .temperature_C = 61,
          .limited_by = {"power", "heat"}};
}

TEST(Conditions, AreWrittenAndReadBack) {
  const nlohmann::json written = json_of(sample());
  const Conditions read = conditions_of(JsonValue(written, "file"));
  EXPECT_EQ(json_of(read), json_of(sample()));
  EXPECT_EQ(text_of(read), "1740 MHz (1500 to 1980), 690 W, 61 C, limited by power and heat");
  EXPECT_EQ(text_of(Conditions{}), "not read");
}

TEST(Conditions, RefuseHalfAClock) {
  nlohmann::json written = json_of(sample());
  written["sm_MHz"] = {1500, 1740};
  try {
    conditions_of(JsonValue(written, "file"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "file: sm_MHz: is not the lowest, the median and the highest clock");
  }
}

TEST(Conditions, AChangeNeedsBothClocks) {
  Conditions later = sample();
  later.sm_MHz = 1653;
  EXPECT_DOUBLE_EQ(clock_change(sample(), later), 0.95);
  EXPECT_EQ(clock_change(sample(), {}), 1);
  EXPECT_EQ(clock_change({}, later), 1);
}

}  // namespace
}  // namespace orrery
