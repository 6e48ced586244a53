#include "models/order_time.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(OrderTime, IsThatOfThePeaks) {
  Gpu gpu;
  gpu.tflops = {{"bf16", 100}};
  gpu.memory_GBps = 1000;
  gpu.nvlink_GBps = 50;
  const Op product = {.name = "product", .work = Gemm{.m = 4096, .n = 4096, .k = 4096}};
  EXPECT_NEAR(order_time(product, 2, gpu), 2.0 * 4096 * 4096 * 4096 / 100e12 * 1e9, 1);
  const Op sum = {.name = "sum", .work = Collective{.kind = CollectiveKind::all_reduce, .bytes = 5000}};
  EXPECT_DOUBLE_EQ(order_time(sum, 2, gpu), 100);
  const Op copy = {.name = "copy", .work = PlaceCopy{.bytes = 5000, .from = Home::device, .to = Home::host}};
  EXPECT_EQ(order_time(copy, 2, gpu), 0) << "beside compute";
  EXPECT_DOUBLE_EQ(order_time(product, 2, Gpu{}), 2.0 * 4096 * 4096 * 4096 * 1e-3);
}

}  // namespace
}  // namespace orrery
