// Vision encoders of configuration files: counts of parameters as published, or from the modules of transformers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/families/hugging_face.h"
#include "models/spec/vision.h"

namespace orrery {
namespace {

constexpr const char* kTextPart =
    "\"hidden_size\": 3584, \"num_hidden_layers\": 28, \"num_attention_heads\": 28, \"num_key_value_heads\": 4, "
    "\"intermediate_size\": 18944, \"vocab_size\": 152064";

// The text model of Qwen3-VL lies in an object of its own.
Model qwen3_with(const std::string& vision) {
  return parse_hugging_face(
      fmt::format("{{\"model_type\": \"qwen3_vl\", \"text_config\": {{\"model_type\": \"qwen3_vl_text\", {}}}, "
                  "\"vision_config\": {{\"model_type\": \"qwen3_vl\", {}}}}}",
                  kTextPart, vision),
      "config.json");
}

Model with_encoder(const char* type, const std::string& vision) {
  return parse_hugging_face(
      fmt::format("{{\"model_type\": \"{}\", {}, \"vision_config\": {{{}}}}}", type, kTextPart, vision), "config.json");
}

// The report on Qwen2-VL states 675M for the encoder of all its models (arXiv 2409.12191, table 1); its projector to
// 3,584 columns included there, the modules sum to 675,759,104.
TEST(VisionFamilies, Qwen2VlHasTheParametersOfItsReport) {
  EXPECT_EQ(vision_parameter_count(with_encoder("qwen2_vl", "\"model_type\": \"qwen2_vl\"")), 675'759'104);
}

TEST(VisionFamilies, Qwen25VlAttendsWithinWindows) {
  const Model m = with_encoder("qwen2_5_vl", "\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 1280");
  ASSERT_TRUE(m.vision);
  EXPECT_EQ(m.vision->window, 64);
  EXPECT_EQ(m.vision->full_layers, (std::vector<std::int64_t>{7, 15, 23, 31}));
  // 32 layers of two RMSNorms, attention with biases, and three matrices with biases; patches; the projector
  const std::int64_t layer = 2 * 1280 + 4 * 1280 * 1280 + 4 * 1280 + 3 * 1280 * 3420 + 2 * 3420 + 1280;
  const std::int64_t projector = 1280 + 5120 * 5120 + 5120 + 5120 * 3584 + 3584;
  EXPECT_EQ(vision_parameter_count(m), 32 * layer + 2 * 3 * 14 * 14 * 1280 + projector);
}

TEST(VisionFamilies, Qwen3VlHasProjectorsOfEarlierLayers) {
  const Model m = qwen3_with("\"deepstack_visual_indexes\": [8, 16]");
  ASSERT_TRUE(m.vision);
  EXPECT_EQ(m.vision->projector.count, 3);
  EXPECT_EQ(m.vision->patches.positions, 2304);
}

TEST(VisionFamilies, AWindowBelowAPatchIsRefused) {
  EXPECT_THROW(with_encoder("qwen2_5_vl", "\"model_type\": \"qwen2_5_vl\", \"window_size\": 7"), Error);
}

TEST(VisionFamilies, OtherEncodersAreLeftOutWithARemark) {
  const Model m = with_encoder("qwen2_vl", "\"model_type\": \"some_vit\"");
  EXPECT_FALSE(m.vision);
  EXPECT_EQ(m.remarks.front().substr(0, 27), "the vision part is left out");
}

TEST(VisionFamilies, HostileSizesAreRefused) {
  const auto said = [](const std::string& more) -> std::string {
    try {
      qwen3_with(more);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(said("\"hidden_size\": 1000000000000000").find("hidden_size: 1000000000000000 is not between"),
            std::string::npos);
  EXPECT_NE(said("\"deepstack_visual_indexes\": 3").find("a list of layers is needed"), std::string::npos);
  EXPECT_NE(said("\"deepstack_visual_indexes\": [8, 100]").find("layers that ascend, from 0 to 26"), std::string::npos);
  EXPECT_NE(said("\"deepstack_visual_indexes\": [8, 8]").find("layers that ascend"), std::string::npos);
  EXPECT_NE(said("\"out_hidden_size\": 2048").find("2048 is not the text model's hidden_size: 3584"),
            std::string::npos);
  EXPECT_NE(said("\"patch_size\": 0").find("patch_size: 0 is not between"), std::string::npos);
}

}  // namespace
}  // namespace orrery
