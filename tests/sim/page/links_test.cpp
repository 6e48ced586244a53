#include "sim/page/links.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

// A link that carries tensor transfers at half its rate in the first half of the time, and data transfers at all of it
// in the last quarter.
LinkLoad half_then_full() {
  LinkLoad load;
  load.name = "NIC";
  load.of = "stage <0>, sending";
  load.capacity = 50e9;
  load.groups = {Dimension::tensor, Dimension::data};
  load.times = {0, 500, 750, 1000};
  load.shares = {0.5, 0, 0, 0, 0, 1, 0, 0};
  load.mean = 0.5;
  load.peak = 1;
  return load;
}

TEST(Links, HaveAnAreaForEachKindOfTransfers) {
  const std::string markup = links_markup({half_then_full()}, 1000);
  EXPECT_TRUE(is_closed(markup));
  EXPECT_EQ(count(markup, "<path"), 2);
  // The time goes from 222 to 870 units: half of it ends at 546, three quarters at 708.
  EXPECT_TRUE(has(markup, "M222 88V51H546V88Z")) << markup;
  EXPECT_TRUE(has(markup, "M708 88V14H870V88Z")) << markup;
  for (const char* words : {"tensor transfers", "data transfers", "stage &lt;0&gt;, sending", "100 %: 50 GB/s",
                            "<td class=\"n\">25.0</td>"})
    EXPECT_TRUE(has(markup, words)) << words;
}

TEST(Links, AreLeftOutWhereNothingGoesOverThem) {
  EXPECT_EQ(links_markup({}, 1000), "");
  EXPECT_EQ(links_markup({half_then_full()}, 0), "");
}

}  // namespace
}  // namespace orrery
