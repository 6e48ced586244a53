#include "sim/page/whatif.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

WhatifAnswer sample_answer(std::size_t ranks) {
  WhatifAnswer a;
  a.steps = 3;
  a.measured = 2, a.replayed = 1.9, a.without_gaps = 1.8, a.even = 1.5, a.asked = 1.7;
  a.by_op = {{"a < b", 1.25}, {"c", 0.99}};
  a.by_worker = {{"1", 1.2}};
  a.transfers = {{"reduce", 0.3, 0.2}};
  for (std::size_t r = 0; r < ranks; ++r) {
    a.workers.push_back(std::to_string(r));
    a.work.push_back({r + 1 == ranks ? 1.4 : 0.95, 1.0});
  }
  a.between_first = "0", a.between_second = "1";
  return a;
}

TEST(WhatifPage, ShowsTimesSlowdownsAndAHeatMap) {
  const WhatifAnswer a = sample_answer(2);
  WhatifQuestion question;
  const std::string page = whatif_page({a, question, "roofs & floors", "orrery whatif", ""});
  EXPECT_TRUE(is_closed(page));
  for (const char* words : {"id=\"measured_step_time_s\" value=\"2\"", "id=\"even_s\"", "a &lt; b", "+25.0 %", "-1.0 %",
                            "1, stage 0: +40.0 %", "0, stage 0: -5.0 %", "moving data", "Ranks 0 and 1",
                            "stay together", "roofs &amp; floors"})
    EXPECT_TRUE(has(page, words)) << words;
  EXPECT_FALSE(has(page, "as asked"));
  question.even_stages = true;
  EXPECT_TRUE(has(whatif_page({a, question, "", "", ""}), "id=\"step_time_s\""));
}

TEST(WhatifPage, AThousandRanksShareRowsOfTheSlowest) {
  const std::string page = whatif_page({sample_answer(1024), {}, "", "", ""});
  EXPECT_TRUE(has(page, "992 to 1023, stage 0: +40.0 %"));
  EXPECT_TRUE(has(page, "slowest of its ranks"));
  EXPECT_LT(page.size(), 60'000U);
}

}  // namespace
}  // namespace orrery
