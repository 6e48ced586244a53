#include "kernels/cuda/rotary.h"

#include "kernels/reference/rotary.h"
#include "tests/kernels/cuda/device.h"

namespace orrery::kernels::cuda {
namespace {

using Rotary = OnDevice;

TEST_F(Rotary, MatchesItsReferenceAndTurnsBack) {
  const Positions positions = {5, 3};
  for (const Type type : kTypes) {
    for (const std::int64_t head_dim : {2, 6, 64, 128}) {
      const RotaryTable table = rotary_table(16, head_dim, 10000);
      const Memory cosine(table.cosine), sine(table.sine);
      const DeviceRotaryTable there = {table.half, cosine.as<float>(), sine.as<float>()};
      for (const bool back : {false, true}) {
        Operand x(type, 10, 3 * head_dim, 8, 1);
        rotate(there, positions, back, x.view(), nullptr);
        reference::rotate<double>(head_dim, 10000, positions, back, x.reference());
        EXPECT_LT(x.error(), error_of(type)) << name_of(type) << " " << head_dim;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::kernels::cuda
