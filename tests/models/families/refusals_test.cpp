#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/families/hugging_face.h"

namespace orrery {
namespace {

std::string refused(const std::string& config) {
  try {
    parse_hugging_face(config, "config.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// Each refusal is one line with the key, the reason and a way on.
TEST(Refusals, SayWhyAndWhatToDo) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"model_type": "t5", "is_encoder_decoder": true})", "model_type: t5: an encoder-decoder"},
      {R"({"model_type": "llama", "is_encoder_decoder": true})", "is_encoder_decoder: an encoder-decoder"},
      {R"({"model_type": "bert"})", "model_type: bert: an encoder"},
      {R"({"model_type": "mamba2"})", "model_type: mamba2: such layers with a state"},
      {R"({"model_type": "llama", "hybrid_override_pattern": "M-M*"})",
       "hybrid_override_pattern: such layers with a state"},
      {R"({"model_type": "kimi_linear", "linear_attn_config": {}})", "linear_attn_config: such layers of linear"},
      {R"({"model_type": "minimax_m2", "attn_type_list": [0, 0, 1]})",
       "attn_type_list: such layers of linear attention"},
      {R"({"model_type": "nemotron-nas", "block_configs": [{"attention": {"no_op": true}}, {"attention": {}}, {}]})",
       "block_configs: layers of unlike sizes are not built: 1 of 3 have no attention"},
      {R"({"model_type": "llama", "index_topk": 2048})", "index_topk: sparse attention"},
      {R"({"model_type": "deepseek_v9", "compress_ratios": [4, 128], "index_topk": 512})",
       "compress_ratios: attention to compressed keys is built for DeepSeek-V4"},
      {R"({"model_type": "mllama", "text_config": {}})", "model_type: mllama: layers of attention to images"},
      {R"({"model_type": "x", "text_config": {"model_type": "minimax"}})", "minimax: such layers of linear"},
      {R"({"model_type": "phi"})", "model_type: phi: a bias on the logits"},
  };
  for (const auto& [config, expected] : cases) {
    const std::string message = refused(config);
    EXPECT_NE(message.find(expected), std::string::npos) << expected << "\n  got: " << message;
    EXPECT_NE(message.find("; choose a decoder-only model"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace orrery
