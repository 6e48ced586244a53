// Images in a spec: what their keys set, and one line for what does not go.
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "tests/models/vision_specs.h"

namespace orrery {
namespace {

TEST(Images, AModelWithoutImagesLeavesItsEncoderOut) {
  const Spec spec = parse_spec(
      "model: {layers: 2, hidden: 64, heads: 4, feed_forward: 64, vocab: 64,\n"
      "  vision: {layers: 1, hidden: 8, heads: 2, feed_forward: 8}}\n"
      "sequence: 32\ncluster: {node: dgx-h100}\nstrategy: {global_batch: 8}\n",
      "spec.yaml");
  EXPECT_FALSE(spec.model.vision);
  ASSERT_FALSE(spec.model.remarks.empty());
  EXPECT_NE(spec.model.remarks.back().find("the vision part is left out"), std::string::npos);
}

TEST(Images, ASampleHasOneOf1024PatchesUnlessItSaysMore) {
  const Spec spec = parse_spec(
      "model: {layers: 2, hidden: 64, heads: 4, feed_forward: 64, vocab: 64,\n"
      "  vision: {layers: 1, hidden: 8, heads: 2, feed_forward: 8, merge: 2}}\n"
      "sequence: {length: 512, images: {}}\ncluster: {node: dgx-h100}\nstrategy: {global_batch: 8}\n",
      "spec.yaml");
  ASSERT_TRUE(spec.images);
  EXPECT_EQ(spec.images->count, 1);
  EXPECT_EQ(spec.images->patches, 1024);
  EXPECT_EQ(spec.model.vision->projector.width, 8 * 4);
}

std::string refusal(const std::string& strategy, const std::string& vision, const std::string& images) {
  try {
    parse_spec("model: {layers: 2, hidden: 64, heads: 4, feed_forward: 64, vocab: 64" + vision +
                   "}\nsequence: {length: 64, images: " + images +
                   "}\ncluster: {node: dgx-h100}\nstrategy: {data: 1, global_batch: 8" + strategy + "}\n",
               "spec.yaml");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Images, AreRefusedInOneLine) {
  const std::string encoder = ", vision: {layers: 1, hidden: 8, heads: 2, feed_forward: 8, merge: 2}";
  EXPECT_EQ(refusal("", encoder, "{patches: 16}"), "");
  EXPECT_NE(refusal("", "", "{patches: 16}").find("the model has no encoder for them; give model.vision"),
            std::string::npos);
  EXPECT_NE(refusal("", encoder, "{patches: 18}").find("18 is not a multiple of merge * merge: 4"), std::string::npos);
  EXPECT_NE(refusal("", encoder, "{patches: 1024}").find("they are 256 tokens, the sample has 64"), std::string::npos);
  EXPECT_NE(refusal(", tensor: 4", encoder, "{patches: 16}").find("4 does not divide model.vision.heads: 2"),
            std::string::npos);
  EXPECT_NE(refusal("", ", vision: {layers: 1, hidden: 9, heads: 2, feed_forward: 8}", "{}")
                .find("spec.yaml:1: model.vision.heads: 2 does not divide hidden: 9"),
            std::string::npos);
  EXPECT_NE(refusal("", ", vision: {layers: 1, hidden: 1000000000000, heads: 2, feed_forward: 8}", "{}")
                .find("is not between 1 and"),
            std::string::npos);
}

TEST(Images, AFrozenEncoderNeedsImages) {
  const std::string text =
      "model: {base: gpt2, frozen: [vision]}\nsequence: 64\ncluster: {node: dgx-h100}\n"
      "strategy: {data: 1, global_batch: 8}\n";
  try {
    parse_spec(text, "spec.yaml");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("samples have no images"), std::string::npos) << e.what();
  }
}

TEST(Images, SizesThatNoEncoderHasAreRefused) {
  const auto encoder = [](const std::string& more) {
    return ", vision: {layers: 3, hidden: 8, heads: 2, feed_forward: 8, " + more + "}";
  };
  EXPECT_NE(refusal("",
                    ", vision: {layers: 2, hidden: 1280, heads: 4, feed_forward: 64, patch: 1000, frames: 1000, "
                    "channels: 1000}",
                    "{}")
                .find("too many weights"),
            std::string::npos);
  EXPECT_NE(refusal("", encoder("window: 4, full_layers: [1, 1]"), "{}").find("they must ascend"), std::string::npos);
  EXPECT_EQ(refusal("", encoder("window: 4, full_layers: [0, 1]"), "{patches: 16}"), "");
}

}  // namespace
}  // namespace orrery
