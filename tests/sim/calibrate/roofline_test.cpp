#include "sim/calibrate/roofline.h"

#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

Imported kernels() {
  Imported file;
  const double flops = 2.0 * 4096 * 4096 * 4096;
  for (const double time : {200e-6, 210e-6, 900e-6})
    file.ops.push_back({{"gemm/output bf16", {4096, 4096, 4096}, flops}, time});
  file.ops.push_back({{"norm/rms/forward bf16", {4096, 8192}, 134e6}, 50e-6});
  return file;
}

TEST(Roofline, ProductsAreBoundByComputeAndNormsByMemory) {
  const Gpu gpu = find_gpu("h100-sxm");
  const auto rows = roofline_of({kernels()}, gpu);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].kind, "gemm/output bf16");
  EXPECT_EQ(rows[0].count, 3);
  EXPECT_NEAR(rows[0].time, 210e-6, 1e-12);  // the median
  EXPECT_TRUE(rows[0].by_compute);
  EXPECT_NEAR(rows[0].roof, 2.0 * 4096 * 4096 * 4096 / 210e-6 / 989.4e12, 1e-9);
  EXPECT_NEAR(rows[0].bytes, 3.0 * 4096 * 4096 * 2, 1);
  EXPECT_FALSE(rows[1].by_compute);
  EXPECT_NEAR(rows[1].roof, 134e6 / 50e-6 / 3350e9, 1e-9);
}

TEST(Roofline, ASmallProductIsBoundByMemory) {
  Imported file;
  file.ops.push_back({{"gemm/output bf16", {1, 4096, 4096}, 2.0 * 4096 * 4096}, 20e-6});
  const auto rows = roofline_of({file}, find_gpu("h100-sxm"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].by_compute);
  EXPECT_LT(rows[0].roof, 1);
}

// Each kernel is held against the peak of its own precision, though profiles have one kind for all of 16 bits and one
// for all of 32.
TEST(Roofline, KernelsHaveThePeakOfTheirOwnPrecision) {
  const double flops = 2.0 * 4096 * 4096 * 4096;
  Imported file;
  for (const char* precision : {"fp16", "tf32", "fp32"}) {
    const std::string width = precision == std::string("fp16") ? "bf16" : "fp32";
    file.ops.push_back({{"gemm/output " + width, {4096, 4096, 4096}, flops}, 20e-3, precision});
  }
  for (const auto& [gpu, peaks] : std::map<std::string, std::map<std::string, double>>{
           {"a100-sxm-80gb", {{"fp16", 312e12}, {"tf32", 156e12}, {"fp32", 19.5e12}}},
           {"v100-sxm2-32gb", {{"fp16", 125e12}, {"fp32", 15.7e12}}}}) {  // it has no bf16
    const auto rows = roofline_of({file}, find_gpu(gpu));
    ASSERT_EQ(rows.size(), 3U);
    for (const RoofRow& row : rows) {
      const auto peak = peaks.find(row.precision);
      if (peak == peaks.end()) continue;
      EXPECT_NEAR(row.roof, flops / 20e-3 / peak->second, 1e-9) << gpu << row.precision;
    }
    EXPECT_NE(roofline_text(rows, find_gpu(gpu), {}).find("tf32"), std::string::npos);
    EXPECT_EQ(roofline_json(rows)[0]["precision"], rows[0].precision);
  }
}

TEST(Roofline, TextAndJsonNameEveryRow) {
  const Gpu gpu = find_gpu("h100-sxm");
  const auto rows = roofline_of({kernels()}, gpu);
  const std::string text = roofline_text(rows, gpu, {});
  for (const char* part : {"gemm/output", "bf16", "4096 x 4096 x 4096", "compute", "memory"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(roofline_json(rows).size(), 2u);
  EXPECT_EQ(roofline_json(rows)[0]["bound"], "compute");
  EXPECT_NE(roofline_text({}, gpu, {}).find("record_shapes"), std::string::npos);
}

}  // namespace
}  // namespace orrery
