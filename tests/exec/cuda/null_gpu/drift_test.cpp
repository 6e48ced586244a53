// A stopwatch's block over which the device gets slower: the null GPU's slowness is changed under it.
#include <gtest/gtest.h>

#include "exec/cuda/stopwatch.h"
#include "tests/exec/cuda/null_gpu/null_gpu.h"

namespace orrery {
namespace {

// Large against what the host takes to enqueue, so that times are the device's.
constexpr double kSlow = 50;

struct Drift : testing::Test {
  void SetUp() override { null_gpu::set_slowness(kSlow); }
  void TearDown() override { null_gpu::set_slowness(1); }
  cuda::Sensors sensors{0};
};

TEST_F(Drift, ASteadyDeviceIsMeasuredOnce) {
  cuda::Stopwatch watch(sensors);
  int calls = 0;
  const cuda::Stopwatch::Work works[] = {[&] {
    ++calls;
    watch.multiply_reference();
  }};
  watch.block(works);
  EXPECT_LT(watch.drift(), 1.01);
  EXPECT_EQ(watch.repeated(), 0);
  EXPECT_EQ(calls, 15);
}

// The device takes 2 % longer once the first work has been measured: both works are measured again, in reverse order.
TEST_F(Drift, AnUnsteadyDeviceIsMeasuredTwiceInReverseOrder) {
  cuda::Stopwatch watch(sensors);
  std::string order;
  const auto work = [&](char name) {
    return [&, name] {
      if (order.empty() || order.back() != name) order += name;
      if (order == "ab") null_gpu::set_slowness(1.02 * kSlow);
      watch.multiply_reference();
    };
  };
  const cuda::Stopwatch::Work works[] = {work('a'), work('b')};
  const std::vector<cuda::Timed> times = watch.block(works);
  EXPECT_EQ(order, "aba");  // b twice in a row
  EXPECT_EQ(watch.repeated(), 1);
  EXPECT_NEAR(watch.drift(), 1.02, 0.005);
  // the mean of a before and after the change, and b after it
  EXPECT_NEAR(times[1].median / times[0].median, 1.02 / 1.01, 0.004);
}

}  // namespace
}  // namespace orrery
