#include "kernels/cuda/update.h"

#include "kernels/reference/update.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Update = OnDevice;

constexpr UpdateRule kRules[] = {{UpdateRule::Kind::adamw, 0.125, 0.875, 0.96875, 0x1p-20, 0.0625},
                                 {UpdateRule::Kind::adam, 0.125, 0.875, 0.96875, 0x1p-20, 0.0625},
                                 {UpdateRule::Kind::sgd, 0.125, 0, 0, 0, 0.0625}};

void expect_reference(const UpdateRule& rule, Type of_gradient, Type of_weight, Type of_forward, std::int64_t n) {
  Operand weights(of_weight, 1, n, 0, 1), first(Type::fp32, 1, n, 0, 2), second(Type::fp32, 1, n, 0, 3);
  Operand forward(of_forward, 1, n, 0, 4);
  const Operand gradient(of_gradient, 1, n, 0, 5);
  const Memory scale(std::vector<float>{2});
  fill(n, 0.5F, second.array(), nullptr);  // second moments are positive
  std::fill(second.doubles.begin(), second.doubles.end(), 0.5);
  const UpdateStep step = {3, 0.5}, halved = {3, 0.25};
  const bool sgd = rule.kind == UpdateRule::Kind::sgd;
  update(rule, step, {1, scale.as<float>()}, n, gradient.array(), weights.array(),
         sgd ? nullptr : first.memory.as<float>(), sgd ? nullptr : second.memory.as<float>(), forward.array(), nullptr);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto s = reference::update<double>(rule, halved, gradient.doubles[i],
                                             {weights.doubles[i], first.doubles[i], second.doubles[i]});
    weights.doubles[i] = forward.doubles[i] = s.weight;
    first.doubles[i] = s.moment1;
    second.doubles[i] = s.moment2;
  }
  EXPECT_LT(weights.error(), error_of(of_weight));
  EXPECT_LT(forward.error(), error_of(of_forward));
  EXPECT_LT(first.error(), kFloatError);
  EXPECT_LT(second.error(), kFloatError);
}

TEST_F(Update, MatchesItsReference) {
  for (const UpdateRule& rule : kRules) {
    for (const Type of_gradient : kTypes) {
      for (const Type of_weight : {Type::fp32, Type::bf16}) {
        for (const std::int64_t n : {1, 13, 4096}) {
          SCOPED_TRACE(name_of(of_gradient) + " " + name_of(of_weight) + " " + std::to_string(n));
          expect_reference(rule, of_gradient, of_weight, Type::bf16, n);
          expect_reference(rule, of_gradient, of_weight, Type::fp32, n);
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
