#include <gtest/gtest.h>

#include <algorithm>

#include "models/families/hugging_face.h"

namespace orrery {
namespace {

bool says(const Model& m, const std::string& text) {
  return std::any_of(m.remarks.begin(), m.remarks.end(),
                     [&](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

const std::string kText = R"({"model_type": "qwen3_vl_text", "hidden_size": 8, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 32, "intermediate_size": 16})";

TEST(Parts, SayWhatIsLeftOut) {
  const auto read = [](const std::string& rest) { return parse_hugging_face("{" + rest + "}", "config.json"); };
  const Model vision = read(R"("vision_config": {}, "tie_word_embeddings": true, "text_config": )" + kText);
  EXPECT_TRUE(says(vision, "the vision part is left out"));
  EXPECT_TRUE(vision.tied_embeddings);
  EXPECT_TRUE(says(read(R"("audio_config": {}, "vision_config": {}, "text_config": )" + kText), "vision and audio"));
  EXPECT_TRUE(says(read(R"("thinker_config": {"text_config": )" + kText + "}"), "text_config alone is read"));
  const Model stored = read(R"("quantization_config": {"quant_method": "fp8"}, "llm_config": )" + kText);
  EXPECT_TRUE(says(stored, "weights stored in fp8"));
  EXPECT_TRUE(parse_hugging_face(kText, "config.json").remarks.empty());
}

TEST(Parts, SayWhichActivationIsAnother) {
  const auto read = [](const std::string& act) {
    std::string text = kText;
    return parse_hugging_face(text.insert(1, "\"hidden_act\": \"" + act + "\", "), "config.json");
  };
  EXPECT_TRUE(says(read("gelu_pytorch_tanh"), "activation: gelu_pytorch_tanh, planned and executed as SwiGLU"));
  EXPECT_TRUE(read("silu").remarks.empty());
}

TEST(Parts, SayWhatIsTakenFromTheClass) {
  const Model m = parse_hugging_face(R"({"text_config": {"model_type": "gemma3_text", "hidden_size": 16}})", "c.json");
  EXPECT_TRUE(says(m, "taken from the family's class in transformers: num_hidden_layers 26, num_attention_heads 8"));
  EXPECT_TRUE(says(m, "sliding_window: 22 of 26 layers attend within 4096 tokens"));
}

}  // namespace
}  // namespace orrery
