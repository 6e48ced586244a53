#include "kernels/cpu/rotary.h"

#include <gtest/gtest.h>

#include "kernels/reference/rotary.h"
#include "tests/kernels/operand.h"

namespace orrery::kernels {
namespace {

TEST(Rotary, MatchesItsReferenceAndLeavesValuesAlone) {
  const RotaryTable table = rotary_table(32, 6, 10000);
  for (const bool back : {false, true}) {
    Operand qkv(2 * 11, 5 * 6, 3, 1);  // 3 heads rotated of 5
    rotate(table, {11, 20}, back, columns_of(qkv.view, 0, 3 * 6));
    reference::rotate<double>(6, 10000, {11, 20}, back, columns_of(qkv.reference, 0, 3 * 6));
    EXPECT_LT(qkv.error(), kFloatError);
  }
}

TEST(Rotary, BackIsTheDerivative) {
  const std::vector<double> x = wide(random_floats(6 * 4, 1)), dy = wide(random_floats(6 * 4, 2));
  std::vector<double> dx = dy;
  reference::rotate<double>(4, 100, {3, 1}, true, seen(dx, 4));
  const auto forward = [](std::vector<double> v) {
    reference::rotate<double>(4, 100, {3, 1}, false, seen(v, 4));
    return v;
  };
  EXPECT_LT(relative_error(dx, finite_differences(x, dy, forward)), kDifferenceError);
}

// Context parallel: a rank's first position is an offset.
TEST(Rotary, PartsOfASequenceGiveTheWhole) {
  const RotaryTable table = rotary_table(12, 8, 500000);
  Operand whole(12, 8, 0, 1), parts(12, 8, 0, 1);
  rotate(table, {12, 0}, false, whole.view);
  for (std::int64_t rank = 0; rank < 3; ++rank) rotate(table, {4, rank * 4}, false, rows_of(parts.view, rank * 4, 4));
  EXPECT_EQ(parts.values, whole.values);
}

}  // namespace
}  // namespace orrery::kernels
