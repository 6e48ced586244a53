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

// Traces of PyTorch 1.13 and earlier, and some later ones, repeat the correlation id where newer ones have the id of
// the operator. The operator is then the innermost one on the launch's thread at that time.
constexpr char kOld[] = R"x({"traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 1682725898000000, "dur": 100,
   "args": {"External id": 3}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 1, "tid": 1, "ts": 1682725898000010, "dur": 50,
   "args": {"External id": 4, "Input Dims": [[320], [2048, 125], [125, 320]], "Input type": ["float", "float", "float"]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1682725898000020, "dur": 5,
   "args": {"External id": 900, "correlation": 900}},
  {"ph": "X", "cat": "kernel", "name": "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(int)",
   "pid": 0, "tid": 7, "ts": 1682725898000500, "dur": 30, "args": {"External id": 900, "correlation": 900}},
  {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "pid": 1, "tid": 2,
   "ts": 1682725898001000, "dur": 90, "args": {"External id": 5}},
  {"ph": "X", "cat": "cpu_op", "name": "AddmmBackward0", "pid": 1, "tid": 2, "ts": 1682725898001001, "dur": 88,
   "args": {"External id": 6, "Input Dims": [[2048, 200]], "Input type": ["float"]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 1682725898001010, "dur": 20,
   "args": {"External id": 7, "Input Dims": [[2048, 200], [200, 77]], "Input type": ["float", "float"]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 1682725898001015, "dur": 5,
   "args": {"External id": 901, "correlation": 901}},
  {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_64x32_sliced1x4_nn", "pid": 0, "tid": 7, "ts": 1682725898001500,
   "dur": 40, "args": {"External id": 901, "correlation": 901}},
  {"ph": "X", "cat": "kernel", "name": "ncclKernel_SendRecv_RING_SIMPLE(ncclDevComm*)", "pid": 0, "tid": 84,
   "ts": 1682725898001600, "dur": 700, "args": {"External id": 902, "correlation": 902}},
  {"ph": "X", "cat": "kernel", "name": "void lone_kernel<float>(int)", "pid": 0, "tid": 7, "ts": 1682725898001700,
   "dur": 10, "args": {"External id": 903, "correlation": 903}}
]})x";

TEST(ImportKineto, OldTracesTieKernelsByLaunchAndThread) {
  const Imported file = import_kineto("old.json", kOld);
  ASSERT_EQ(file.ops.size(), 2U);
  EXPECT_EQ(file.ops[0].shape.kind, "gemm/output fp32");
  EXPECT_EQ(file.ops[0].shape.sizes, (std::vector<double>{2048, 320, 125}));
  EXPECT_NEAR(file.ops[0].seconds, 30e-6, 1e-12);
  EXPECT_EQ(file.ops[0].precision, "tf32");  // the instruction of CUTLASS's kernel is that of TF32
  // No forward product has its sizes, but the node of autograd received a gradient of 2048 x 200.
  EXPECT_EQ(file.ops[1].shape.kind, "gemm/input_gradient fp32");
  EXPECT_EQ(file.ops[1].precision, "fp32");
  const std::map<std::string, std::int64_t> refused = {
      {"lone_kernel: kernels that do not say which operator launched them", 1},
      {"ncclKernel_SendRecv_RING_SIMPLE: collectives that do not say what they move", 1}};
  EXPECT_EQ(file.refused, refused);
  EXPECT_NEAR(file.kernel_time, 80e-6, 1e-12);  // without the collective
}

// ROCm's profiler gives kernels a "kind" ("Dispatch Kernel"), which is none of ours.
TEST(ImportKineto, KernelsOfROCmHaveAKindOfAnotherMeaning) {
  const Imported file = import_kineto("rocm.json", R"({"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.5, "dur": 50,
     "args": {"External id": 13, "Input Dims": [[5, 128], [128, 64]], "Input type": ["c10::Half", "c10::Half"]}},
    {"ph": "X", "cat": "kernel", "name": "Cijk_Alik_Bljk", "pid": 2, "tid": 0, "ts": 70.25, "dur": 17.6,
     "args": {"External id": 13, "correlation": 121, "kind": "Dispatch Kernel"}}]})");
  ASSERT_EQ(file.ops.size(), 1U);
  EXPECT_EQ(file.ops[0].shape.kind, "gemm/output bf16");
  EXPECT_EQ(file.ops[0].precision, "fp16");
}

}  // namespace
}  // namespace orrery
