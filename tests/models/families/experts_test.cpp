#include <gtest/gtest.h>

#include "models/families/hugging_face.h"

namespace orrery {
namespace {

// ERNIE says where layers with experts begin and end, and every how manyth has them.
TEST(Experts, LieWhereTheFileSays) {
  const Model m = parse_hugging_face(R"({"model_type": "ernie4_5_moe", "hidden_size": 8, "num_hidden_layers": 8,
      "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 32, "intermediate_size": 16,
      "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 6, "moe_num_shared_experts": 0,
      "moe_layer_start_index": 2, "moe_layer_end_index": 6, "moe_layer_interval": 2})",
                                     "config.json");
  std::string text;
  for (std::int64_t i = 0; i < m.layers; ++i) text += has_experts(m, i) ? 'e' : '.';
  EXPECT_EQ(text, "...e.e..");
  const std::int64_t attention = 4 * 8 * 8 + 2 * 8, dense = 3 * 8 * 16, experts = 8 * 4 + 4 + 4 * 3 * 8 * 6;
  EXPECT_EQ(parameter_count(m, 0), 32 * 8 + 8 * attention + 6 * dense + 2 * experts + 8);
}

}  // namespace
}  // namespace orrery
