#include "sim/print/text.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Text, PicksUnitsByTheFigure) {
  EXPECT_EQ(time_text(17.3123), "17.31 s");
  EXPECT_EQ(time_text(0.44694), "446.9 ms");
  EXPECT_EQ(time_text(2.5e-5), "25.00 us");
  EXPECT_EQ(time_text(0), "0.00 us");
  EXPECT_EQ(memory_text(80.0 * 1073741824), "80.00 GiB");
  EXPECT_EQ(memory_text(500.0 * 1048576), "500.0 MiB");
  EXPECT_EQ(volume_text(2.2e9), "2.20 GB");
  EXPECT_EQ(volume_text(907.6e9), "907.6 GB");
  EXPECT_EQ(volume_text(4), "4 B");
  EXPECT_EQ(count_text(70.55e9), "70.55 B");
  EXPECT_EQ(count_text(124.4e6), "124.4 M");
  EXPECT_EQ(count_text(12), "12");
  EXPECT_EQ(percent_text(0.3824), "38.2 %");
}

TEST(Text, OneScaleServesAColumn) {
  const Scale s = time_scale(17.3);
  EXPECT_EQ(number(0.02, s), "0.02");
  EXPECT_EQ(with_unit(0.02, s), "0.02 s");
}

TEST(Text, GroupsDigitsByThree) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(70553706496), "70,553,706,496");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1000), "-1,000");
}

TEST(Text, ColoursOnlyWhenAsked) {
  EXPECT_EQ(heading("a", {}), "a");
  EXPECT_EQ(warning("a", {}), "a");
  EXPECT_NE(heading("a", {.colour = true}), "a");
  EXPECT_NE(warning("a", {.colour = true}), "a");
}

}  // namespace
}  // namespace orrery
