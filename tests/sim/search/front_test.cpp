#include "sim/search/front.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

FrontRow candidate(const char* name, double rate, std::optional<double> usd, Bytes memory) {
  FrontRow r;
  r.machine = name;
  r.gpus = 8;
  r.strategy = "TP1";
  r.tokens_per_s = rate;
  r.usd_per_Mtoken = usd;
  r.memory = memory;
  return r;
}

TEST(SearchFront, KeepsWhatNothingBeats) {
  std::vector<std::string> names;
  const std::vector<FrontRow> rows = {candidate("lean", 1, 3.0, 1),    candidate("fast", 9, 2.0, 9),
                                      candidate("cheap", 5, 1.0, 9),   candidate("beaten", 4, 2.0, 9),
                                      candidate("unpriced", 4, {}, 9), candidate("twice", 9, 2.0, 9),
                                      candidate("middle", 5, 2.0, 5)};
  for (const FrontRow& r : front_of(rows)) names.push_back(r.machine);
  EXPECT_EQ(names, (std::vector<std::string>{"fast", "cheap", "middle", "lean"}));
}

TEST(SearchFront, TellsMachinesApartWhereThereAreSeveral) {
  EXPECT_NE(front_text({candidate("a", 1, 1.0, 1), candidate("a", 2, 2.0, 2)}).find("time against memory"),
            std::string::npos);
  const std::string text = front_text({candidate("a", 1, 1.0, 1), candidate("b", 2, {}, 2)});
  EXPECT_NE(text.find("time, cost and memory"), std::string::npos);
  EXPECT_NE(text.find("1.000"), std::string::npos);
  const auto j = nlohmann::json::parse(front_json({candidate("b", 2, {}, 2)}));
  EXPECT_TRUE(j[0].at("usd_per_Mtoken").is_null());
}

}  // namespace
}  // namespace orrery
