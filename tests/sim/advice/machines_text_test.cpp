#include <gtest/gtest.h>

#include "sim/advice/machines.h"

namespace orrery {
namespace {

Machine machine_on(const std::string& name) {
  Machine m{.name = name, .gpus = 4, .nodes = 1, .strategy = "DP4", .reached = Reached::proven, .gap = 0};
  m.step_s = m.step_low_s = m.step_high_s = 0.5;
  m.tokens_per_s = 1000;
  return m;
}

// The unit of a column is chosen for the slowest machine; step times of the fastest still have three digits.
TEST(MachinesText, FastAndSlowHaveThreeDigits) {
  const PriceList prices = load_prices({});
  Machine slow = machine_on("dgx-h100"), fast = slow;
  slow.step_s = 206.04;
  fast.step_s = 0.2384;
  const std::string text = machines_text({slow, fast}, prices, {});
  EXPECT_NE(text.find(" 206 "), std::string::npos) << text;
  EXPECT_NE(text.find(" 0.238 "), std::string::npos) << text;
}

// A machine that misses a limit, or that a stopped search did not reach, has its row, and the reason.
TEST(MachinesText, EveryMachineIsARow) {
  const PriceList prices = load_prices({});
  const Machine good = machine_on("dgx-h100");
  Machine late = machine_on("late-node");
  late.excluded = "12.5 days, above --deadline 3";
  const Machine waits{.name = "waiting-node", .gpus = 16};
  const std::string text = machines_text({good, late, waits}, prices, {}), csv = machines_csv({good, late, waits});
  EXPECT_NE(text.find(" x late-node: 12.5 days, above --deadline 3"), std::string::npos) << text;
  const std::size_t row = text.find("waiting-node");
  ASSERT_NE(row, std::string::npos) << text;
  EXPECT_NE(text.substr(row, text.find('\n', row) - row).find("not reached"), std::string::npos) << text;
  EXPECT_NE(text.substr(0, text.find('\n', text.find("dgx-h100"))).find(" proven "), std::string::npos) << text;
  EXPECT_NE(csv.find("\nlate-node,4,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nwaiting-node,16,"), std::string::npos) << csv;
}

}  // namespace
}  // namespace orrery
