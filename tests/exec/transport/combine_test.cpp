#include "exec/transport/combine.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/float16.h"
#include "models/base/error.h"

namespace orrery {
namespace {

using kernels::Bf16;
using kernels::to_bf16;
using kernels::to_float;

TEST(Combine, FloatsAreAddedOrCompared) {
  const std::vector<float> from = {1, -2, 0.5F};
  std::vector<float> into = {3, -4, 1};
  combine(Element::f32, Reduction::sum, from.data(), into.data(), 3);
  EXPECT_EQ(into, (std::vector<float>{4, -6, 1.5F}));
  combine(Element::f32, Reduction::maximum, from.data(), into.data(), 3);
  EXPECT_EQ(into, (std::vector<float>{4, -2, 1.5F}));
}

TEST(Combine, Bf16SumsAreRoundedOnce) {
  for (const float a : {1.0F, 256.0F, -3.25F, 1e30F}) {
    for (const float b : {0.0F, 1.0F, 3.0F, 0.0078125F, -1e30F}) {
      const Bf16 from = to_bf16(a);
      Bf16 into = to_bf16(b);
      const Bf16 right = to_bf16(to_float(into) + to_float(from));
      combine(Element::bf16, Reduction::sum, &from, &into, 1);
      EXPECT_EQ(into.bits, right.bits) << a << " + " << b;
    }
  }
}

TEST(Combine, Fp16SumsAreRoundedOnceAndMayBeInfinite) {
  const kernels::Fp16 from = kernels::to_fp16(2049);
  kernels::Fp16 into = kernels::to_fp16(1);
  combine(Element::fp16, Reduction::sum, &from, &into, 1);
  EXPECT_EQ(to_float(into), 2048);  // 2049 was rounded to 2048, 2048 + 1 is a tie
  const kernels::Fp16 large = kernels::to_fp16(65504);
  kernels::Fp16 sum = kernels::to_fp16(-65504);
  combine(Element::fp16, Reduction::maximum, &large, &sum, 1);
  EXPECT_EQ(to_float(sum), 65504);
  combine(Element::fp16, Reduction::sum, &large, &sum, 1);
  EXPECT_TRUE(std::isinf(to_float(sum)));
}

TEST(Combine, NothingIsTouchedBeyondTheElements) {
  const float from[] = {1, 1};
  float into[] = {1, 1};
  combine(Element::f32, Reduction::sum, from, into, 1);
  EXPECT_EQ(into[1], 1);
  combine(Element::f32, Reduction::sum, nullptr, nullptr, 0);
}

TEST(Combine, BytesHaveNoSum) {
  char a = 1;
  const char b = 2;
  EXPECT_THROW(combine(Element::bytes, Reduction::sum, &b, &a, 1), Error);
}

}  // namespace
}  // namespace orrery
