#include "exec/cuda/sensors.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "exec/host/lanes.h"
#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

class Sensors : public test::OnGpu {};

// Possible values for any GPU; where NVML is not installed, nothing is known and nothing fails.
TEST_F(Sensors, TellWhatIsPossible) {
  cuda::Sensors sensors(0);
  const Picoseconds begin = host_now();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Conditions c = sensors.since(begin, "rest");
  EXPECT_EQ(c.during, "rest");
  if (!c.known()) return;
  EXPECT_LE(c.sm_low_MHz, c.sm_MHz);
  EXPECT_LE(c.sm_MHz, c.sm_high_MHz);
  EXPECT_GT(c.sm_MHz, 50);
  EXPECT_LT(c.sm_MHz, 5000);
  EXPECT_GT(c.power_W, 5);
  EXPECT_LT(c.power_W, 5000);
  EXPECT_LT(c.temperature_C, 120);
}

}  // namespace
}  // namespace orrery
