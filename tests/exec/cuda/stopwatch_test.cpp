#include "exec/cuda/stopwatch.h"

#include <gtest/gtest.h>

#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

class Stopwatch : public test::OnGpu {};

// Four times the same work in a row take longer than once, alone and in a block.
TEST_F(Stopwatch, TimesWorkByItsLength) {
  cuda::Sensors sensors(0);
  cuda::Stopwatch watch(sensors);
  const auto times = [&](int n) {
    return [&watch, n] {
      for (int i = 0; i < n; ++i) watch.multiply_reference();
    };
  };
  EXPECT_GT(watch.time(times(4)).median, 2 * watch.time(times(1)).median);
  const cuda::Stopwatch::Work works[] = {times(1), times(4)};
  const std::vector<cuda::Timed> block = watch.block(works);
  ASSERT_EQ(block.size(), 2U);
  EXPECT_GT(block[1].median, 2 * block[0].median);
  EXPECT_GT(block[0].median, 0);
  EXPECT_GE(watch.drift(), 1);
}

}  // namespace
}  // namespace orrery
