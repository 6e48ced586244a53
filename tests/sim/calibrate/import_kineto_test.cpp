#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/calibrate/import.h"

namespace orrery {
namespace {

// Two steps of PyTorch 2.11 as benchmarks/pytorch_traces.py recorded them on an H200: kernels of attention belong to
// the operators of cuDNN there, and those of experts to grouped products. Every product with shapes is taken.
TEST(ImportKineto, PyTorch211AsItWasRecorded) {
  const std::string folder = ORRERY_SOURCE_DIR "/benchmarks/measured/gpu_h200_2026-11-27/traces/";
  const auto count = [](const Imported& file, std::string_view kind) {
    return std::count_if(file.ops.begin(), file.ops.end(),
                         [&](const OpRow& op) { return op.shape.kind.starts_with(kind); });
  };
  for (const char* name : {"eager", "compile", "fsdp"}) {
    SCOPED_TRACE(name);
    const Imported file = import_file(folder + name + ".json.gz");
    EXPECT_EQ(count(file, "gemm/output"), 2 * (16 * 4 + 1));  // of two steps, 16 layers and the head
    EXPECT_EQ(count(file, "gemm/input_gradient"), 2 * (16 * 4 + 1));
    EXPECT_EQ(count(file, "gemm/weight_gradient"), 2 * (16 * 4 + 1));
    EXPECT_EQ(count(file, "attention/forward"), 2 * 16);
    EXPECT_EQ(count(file, "attention/backward"), 2 * 16);
    EXPECT_GT(file.taken_time, 0.6 * file.kernel_time);
  }
  const Imported file = import_file(folder + "moe.json.gz");
  for (const char* role : {"output", "input_gradient", "weight_gradient"})
    EXPECT_EQ(count(file, fmt::format("grouped gemm/{}", role)), 2 * 8 * 2) << role;
  EXPECT_TRUE(file.refused.contains("aten::silu: no op of a plan, or one that is not told from the trace"));
}

}  // namespace
}  // namespace orrery
