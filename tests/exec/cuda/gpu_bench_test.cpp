#include "exec/cuda/gpu_bench.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/trace/measured_json.h"
#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

class Bench : public test::OnGpu {};

// Measured rates are plausible: no higher than an H100's, and no lower than those of a small GPU.
TEST_F(Bench, TimesArePossible) {
  cuda::Sensors sensors(0);
  const cuda::GpuBench b = cuda::bench_gpu(true, sensors);
  EXPECT_GT(b.products.size(), 10U);
  for (const cuda::ChosenProduct& p : b.products) {
    const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    EXPECT_LT(flops / p.seconds, test::computes() ? 1.2e15 : INFINITY);
    EXPECT_GT(flops / p.seconds, 1e12);
    EXPECT_GE(p.algorithm.split_k, 1);
  }
  EXPECT_GT(b.launch_host, 0);
  EXPECT_LT(b.launch_host, 1e-3);
  const auto json = nlohmann::json::parse(to_json(b, {{"device", "one"}}));
  EXPECT_FALSE(measured_of(JsonValue(json, "bench").at("measured")).ops.empty());
}

}  // namespace
}  // namespace orrery
