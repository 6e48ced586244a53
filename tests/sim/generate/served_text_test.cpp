#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/generate/served.h"

namespace orrery {
namespace {

TEST(ServedText, GroupsErrorsAndCountsRefusals) {
  const ServedRow a{.id = "a", .framework = "vLLM 0.9", .gpu = "b200"},
      b{.id = "b", .framework = "vLLM 0.11", .gpu = "b200"};
  const std::vector<ServedCase> cases = {{.row = &a, .figures = {{"token", 11, 10}}},
                                         {.row = &b, .figures = {{"token", 8, 10}}},
                                         {.row = &b, .refused = "no such model"},
                                         {.row = &a, .refused = "no such model"}};
  const std::string text = served_text(cases, {});
  EXPECT_NE(text.find("token   vLLM   b200     2    1.10    15.0      20.0   20.0"), std::string::npos) << text;
  EXPECT_NE(text.find("2  no such model"), std::string::npos) << text;
  const nlohmann::json root = nlohmann::json::parse(served_json(cases));
  EXPECT_EQ(root.at("schema"), "orrery.served/1");
  EXPECT_EQ(root.at("rows").size(), 4U);
  EXPECT_EQ(root.at("rows")[2].at("refused"), "no such model");
  EXPECT_EQ(root.at("rows")[0].at("figures")[0].at("predicted"), 11);
}

}  // namespace
}  // namespace orrery
