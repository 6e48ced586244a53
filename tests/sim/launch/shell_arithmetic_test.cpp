#include <gtest/gtest.h>

#include "sim/launch/shell_values.h"

namespace orrery {
namespace {

TEST(ShellArithmetic, WholeNumbersByTheRanksOfOperators) {
  ShellValues v;
  v.set("A", {{"6", 1}});
  EXPECT_EQ(shell_arithmetic("2 + 3*4", v), 14);
  EXPECT_EQ(shell_arithmetic("(2+3) * $A / 4", v), 7);
  EXPECT_EQ(shell_arithmetic("${A} % 4 - -1", v), 3);
  EXPECT_EQ(shell_arithmetic("2**10-A", v), 1018);
}

TEST(ShellArithmetic, NothingIsGuessed) {
  const ShellValues v;
  for (const char* text :
       {"", "B", "1/0", "1 +", "(1", "9223372036854775807+1", "9223372036854775807*2", "2**64", "1 2"})
    EXPECT_EQ(shell_arithmetic(text, v), std::nullopt) << text;
  EXPECT_EQ(shell_arithmetic(std::string(10'000, '('), v), std::nullopt);
}

}  // namespace
}  // namespace orrery
