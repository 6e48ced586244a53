#include "viz/timeline/op_shape.h"

#include <gtest/gtest.h>

using namespace orrery;

TEST(OpShape, GradientsOfAProductHaveItsSizes) {
  EXPECT_EQ(shape_words({"gemm/output bf16", {512, 1024, 256}, 0}), "gemm 1024x512x256");
  EXPECT_EQ(shape_words({"gemm/weight_gradient fp32", {1024, 256, 512}, 0}), "gemm 1024x512x256");
}

TEST(OpShape, OtherOpsKeepTheirKind) {
  EXPECT_EQ(shape_words({"norm/rms/backward fp32", {8, 4}, 0}), "norm/rms/backward 8x4");
  EXPECT_EQ(shape_words({"grouped gemm/output", {8, 4}, 0}), "grouped gemm/output 8x4");
  EXPECT_EQ(shape_words("all_gather", 2048), "all_gather 2048 bytes");
}
