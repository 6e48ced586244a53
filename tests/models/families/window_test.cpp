#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/families/hugging_face.h"

namespace orrery {
namespace {

Model windowed(const std::string& type, const std::string& rest) {
  return parse_hugging_face(
      fmt::format(R"({{"model_type": "{}", "hidden_size": 8, "num_hidden_layers": 6, "num_attention_heads": 2,
      "num_key_value_heads": 2, "vocab_size": 32, "intermediate_size": 16, "sliding_window": 4, {}}})",
                  type, rest),
      "config.json");
}

std::string windows_of(const Model& m) {
  std::string text;
  for (std::int64_t i = 0; i < m.layers; ++i) text += has_window(m, i) ? 'w' : '.';
  return text;
}

TEST(Window, FollowsEveryListOfLayers) {
  EXPECT_EQ(windows_of(windowed("mistral", R"("head_dim": 4)")), "wwwwww");
  const std::string s = R"("sliding_attention")", f = R"("full_attention")";
  const auto kinds = [](const std::vector<std::string>& list) {
    return fmt::format(R"("layer_types": [{}])", fmt::join(list, ", "));
  };
  EXPECT_EQ(windows_of(windowed("mistral", kinds({s, s, f, s, s, f}))), "ww.ww.");
  EXPECT_EQ(windows_of(windowed("mistral", kinds({f, s, f, s, f, s}))), ".w.w.w");
  EXPECT_EQ(windows_of(windowed("mistral", kinds({s, s, s, s, s, f}))), "wwwww.");
  EXPECT_EQ(windows_of(windowed("mistral", kinds({f, s, s, s, s, s}))), ".wwwww");
  EXPECT_EQ(windows_of(windowed("mistral", kinds({f, f, f, f, f, f}))), "......");
  EXPECT_EQ(windows_of(windowed("exaone4", R"("sliding_window_pattern": "LG")")), "w.w.w.");
  EXPECT_EQ(windows_of(windowed("qwen2", R"("use_sliding_window": true, "max_window_layers": 4)")), "....ww");
  EXPECT_EQ(windows_of(windowed("qwen2", R"("use_sliding_window": false)")), "......");
}

TEST(Window, RefusesOtherKindsOfLayers) {
  for (const auto& [rest, expected] : {std::pair{R"("layer_types": ["full_attention"])", "a list of 6 kinds is needed"},
                                       {R"("layer_types": ["full_attention", "linear_attention", "full_attention",
      "full_attention", "full_attention", "full_attention"])",
                                        "layer 1: \"linear_attention\""},
                                       {R"("sliding_window_pattern": "LX")", "letters L"}}) {
    try {
      windowed("exaone4", rest);
      ADD_FAILURE() << rest;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace orrery
