#include "models/base/quantity.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

struct QuantityCase {
  const char* text;
  const char* unit;
  double value;
};

TEST(Quantity, ReadsUnits) {
  const QuantityCase cases[] = {
      {"3.5", "", 3.5},       {"80", "GiB", 80},         {"80 GiB", "GiB", 80},    {"1 TiB", "GiB", 1024},
      {"1GB", "MB", 1000},    {"400 Gb/s", "Gbps", 400}, {"50 GB/s", "Gbps", 400}, {"400 Gbps", "GBps", 50},
      {"2 us", "us", 2},      {"2 ms", "us", 2000},      {"1e3 W", "kW", 1},       {"-4", "", -4},
      {"2 hours", "s", 7200}, {"30 min", "hours", 0.5},  {"15T", "", 15e12},       {"30 M", "", 30e6},
      {"8k", "", 8000},       {"8Ki", "", 8192},         {"2G", "", 2e9}};
  for (const QuantityCase& c : cases) {
    const auto value = parse_quantity(c.text, c.unit);
    ASSERT_TRUE(value) << c.text;
    EXPECT_NEAR(*value, c.value, 1e-9 * (1 + c.value * c.value)) << c.text << " in " << c.unit;
  }
}

TEST(Quantity, RefusesWhatIsNoFigure) {
  for (const char* text : {"", " ", "x", "nan", "inf", "-inf", "1e999", "4 parsecs", "4 GiB/", "4 GB", "4 s", "0x10"}) {
    EXPECT_FALSE(parse_quantity(text, "Gbps")) << text;
  }
  EXPECT_FALSE(parse_quantity("4 GiB", ""));
  EXPECT_FALSE(parse_quantity("4 B", ""));
  EXPECT_FALSE(parse_quantity("4k", "GiB"));
}

TEST(Quantity, KeysNameTheirUnits) {
  EXPECT_EQ(unit_of_key("bucket_MiB"), "MiB");
  EXPECT_EQ(unit_of_key("nic_Gbps"), "Gbps");
  EXPECT_EQ(unit_of_key("TB"), "TB");
  EXPECT_EQ(unit_of_key("cluster.nvme.TB"), "TB");
  EXPECT_EQ(unit_of_key("node_mtbf_hours"), "hours");
  EXPECT_EQ(unit_of_key("v_head_dim"), "");
  EXPECT_EQ(unit_of_key("tensor"), "");
}

}  // namespace
}  // namespace orrery
