#include "kernels/cuda/softmax.h"

#include "kernels/reference/attention.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Softmax = OnDevice;

TEST_F(Softmax, MatchesItsReference) {
  const CausalMask masks[] = {{}, {.window = 3}, {.query_offset = 1000}, {.query_offset = 2, .key_offset = 5}};
  for (const Type type : kTypes) {
    for (const MatrixShape& s : kShapes) {
      for (const CausalMask& mask : masks) {
        SCOPED_TRACE(name_of(type, s));
        Operand x(type, s.rows, s.columns, s.gap, 1), p(Type::fp32, s.rows, s.columns, s.gap, 2);
        const std::int64_t queries = (s.rows + 1) / 2;
        masked_softmax(x.view(), queries, mask, p.view(), nullptr);
        reference::masked_softmax<double>(x.reference(), queries, mask, p.reference());
        EXPECT_LT(p.error(), kFloatError);
        masked_softmax(x.view(), queries, mask, x.view(), nullptr);
        reference::masked_softmax<double>(x.reference(), queries, mask, x.reference());
        EXPECT_LT(x.error(), error_of(type));
      }
    }
  }
}

TEST_F(Softmax, GradientMatchesItsReference) {
  for (const Type type : kTypes) {
    for (const MatrixShape& s : kShapes) {
      if (s.columns == 1) continue;
      Operand p(type, s.rows, s.columns, s.gap, 1), g(type, s.rows, s.columns, s.gap, 2);
      softmax_gradient(p.view(), g.view(), nullptr);
      reference::softmax_gradient<double>(p.reference(), g.reference());
      EXPECT_LT(g.error(), error_of(type)) << name_of(type, s);
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
