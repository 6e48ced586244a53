#include "sim/report/difference.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Report report_of(double step, double compute, double tensor) {
  Report r;
  r.step_time_s = step;
  r.time_s[static_cast<int>(TimeKind::compute)] = compute;
  r.time_s[static_cast<int>(TimeKind::exposed_tensor)] = tensor;
  return r;
}

TEST(Difference, NamesTheLargestFirstAndLeavesOutWhatIsSmall) {
  const Report best = report_of(10, 8, 2);
  EXPECT_TRUE(losses(best, report_of(10.15, 8.08, 2.07)).empty());
  const std::vector<Loss> lost = losses(best, report_of(16, 9, 7));
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[0].kind, TimeKind::exposed_tensor);
  EXPECT_DOUBLE_EQ(lost[0].seconds, 5);
  EXPECT_EQ(lost[1].kind, TimeKind::compute);
}

TEST(Difference, SaysWhichTransferItIs) {
  Report slower = report_of(13, 8, 5);
  slower.communication.push_back(
      {.group = "tensor", .op = "all_reduce", .link = "nvlink", .bytes_per_gpu = 8.1e9, .exposed_s = 5});
  const std::vector<Loss> lost = losses(report_of(10, 8, 2), slower);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(text_of(lost[0]), "exposed tensor 3.00 s more (all_reduce over nvlink, 8.10 GB a step)");
}

}  // namespace
}  // namespace orrery
