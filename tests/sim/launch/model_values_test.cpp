#include "sim/launch/model_values.h"

#include <gtest/gtest.h>

#include "models/families/hugging_face.h"

namespace orrery {
namespace {

TEST(ModelValues, ShapesStandBesideTheFile) {
  const SpecValues v{model_values(find_model("mixtral-8x7b"), "config.json")};
  EXPECT_EQ(v.text("model.base"), "config.json");
  EXPECT_EQ(v.number("model.layers"), 32);
  EXPECT_EQ(v.number("model.moe.experts"), 8);
  EXPECT_EQ(v.text("model.tied_embeddings"), "false");
  EXPECT_EQ(SpecValues{model_values(find_model("gpt2"), "x")}.find("model.moe.experts"), nullptr);
}

}  // namespace
}  // namespace orrery
