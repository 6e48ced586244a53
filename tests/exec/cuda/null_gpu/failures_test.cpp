// One small step in which one call of CUDA, cuBLASLt or NCCL fails: a clear error, nothing left behind, nobody who
// waits in vain. A sample of the calls; ORRERY_NULL_GPU_ALL=1 takes every one.
#include <algorithm>
#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/host/text.h"
#include "exec/transport/alone_transport.h"
#include "tests/exec/cuda/nccl_ranks.h"
#include "tests/exec/cuda/null_gpu/null_gpu.h"

namespace orrery {
namespace {

using Errors = std::vector<std::string>;

void step(const Rank& rank, QueuedTransport& transport) {
  const Text text =
      read_text(ORRERY_SOURCE_DIR "/exec/program/data/text.txt", rank.spec.model.vocab, rank.spec.sequence);
  cuda::SharedGpu gpu;
  cuda::CudaDevice device(rank, gpu, transport, false);
  ExecuteOptions options;
  options.steps = 1;
  options.training = test::training_of(rank.spec);
  EXPECT_EQ(execute(rank, device, text, options).steps.size(), 1U);
}

Errors alone(const Spec& spec) {
  try {
    const Plan plan = make_plan(spec);
    const Rank rank(spec, plan, 0);
    step(rank, *alone_transport(rank, {}));
    return {""};
  } catch (const std::exception& error) {
    return {error.what()};
  }
}

Errors over_nccl(const Spec& spec) {
  const Plan plan = make_plan(spec);
  return test::on_nccl_ranks(plan, [&](int number, QueuedTransport& transport) {
    const Rank rank(spec, plan, number);
    step(rank, transport);
  });
}

// Calls whose failure may pass: memory that is asked for again once what is unused has been given back, waits of
// destructors, and what an algorithm tells about itself.
bool may_pass(const std::string& function) {
  return std::set<std::string>{"cudaMalloc", "cudaMallocHost", "cudaStreamSynchronize", "cudaDeviceSynchronize",
                               "cublasLtMatmulAlgoConfigGetAttribute"}
      .contains(function);
}

void expect_clear(const std::string& function, const Errors& errors) {
  const bool all_well = std::all_of(errors.begin(), errors.end(), [](const std::string& e) { return e.empty(); });
  if (all_well) {
    EXPECT_TRUE(may_pass(function)) << "the failure passes unnoticed";
    return;
  }
  // a launch is named by its kernel; memory that ran out, by what was asked for
  const std::string named = function == "cudaLaunchKernel" ? ": unknown error" : function;
  const bool allocates = function.starts_with("cudaMalloc");
  const bool told = std::any_of(errors.begin(), errors.end(), [&](const std::string& e) {
    return e.find(named) != std::string::npos || (allocates && e.find("out of memory") != std::string::npos);
  });
  EXPECT_TRUE(told) << "the error does not say so: " << testing::PrintToString(errors);
}

std::vector<std::int64_t> sample(std::int64_t calls) {
  std::set<std::int64_t> numbers = {1, 2, calls / 2, calls};
  if (std::getenv("ORRERY_NULL_GPU_ALL") != nullptr) {
    for (std::int64_t n = 1; n <= calls; ++n) numbers.insert(n);
  }
  std::vector<std::int64_t> some(numbers.begin(), numbers.end());
  std::erase_if(some, [&](std::int64_t n) { return n < 1 || n > calls; });
  return some;
}

void fail_each_call(Errors (*run)(const Spec&), const Spec& spec) {
  null_gpu::set_patience(3);
  EXPECT_THAT(run(spec), testing::Each(""));
  for (const auto& [function, calls] : null_gpu::calls()) {
    if (function == null_gpu::kOrders) continue;
    if (function == "cudaSetDevice") continue;  // such a rank never comes: the matter of the watch
    for (const std::int64_t number : sample(calls)) {
      SCOPED_TRACE(testing::Message() << "call " << number << " of " << calls << " of " << function << " fails");
      null_gpu::begin(function, number);
      const Errors errors = run(spec);
      if (null_gpu::has_failed()) expect_clear(function, errors);
      EXPECT_THAT(null_gpu::complaints(), testing::IsEmpty());
      EXPECT_THAT(null_gpu::left_behind(), testing::IsEmpty());
    }
  }
  null_gpu::set_patience(20);
}

constexpr char kTinyLlama[] =
    "{name: tiny, layers: 1, hidden: 16, heads: 2, kv_heads: 2, feed_forward: 24, vocab: 40, qk_norm: true}";

TEST(Failures, OfARankAlone) {
  fail_each_call(alone, spec_of(test::Case{
                            kTinyLlama, "data: 1, global_batch: 1, offload: {optimizer: {device: cpu, tile: 501}}"}));
}

// A fault of the device is reported by the next call that waits; if the host waits after each task, the error names the
// task.
TEST(Failures, NameTheTaskWhereTheHostWaitsForEach) {
  const Spec spec = spec_of(test::Case{kTinyLlama, "data: 1, global_batch: 1"});
  EXPECT_EQ(alone(spec)[0], "");
  const std::int64_t without = null_gpu::calls()["cudaStreamSynchronize"];
  ::setenv("ORRERY_CUDA_SYNC", "1", 1);
  null_gpu::begin();
  EXPECT_EQ(alone(spec)[0], "");
  const std::int64_t with = null_gpu::calls()["cudaStreamSynchronize"];
  const auto tasks = static_cast<std::int64_t>(make_plan(spec).task_count());
  EXPECT_EQ(with, without + tasks);
  null_gpu::begin("cudaStreamSynchronize", with / 2);
  EXPECT_THAT(alone(spec)[0], testing::EndsWith(" of micro-batch 0: unknown error"));
  ::unsetenv("ORRERY_CUDA_SYNC");
}

TEST(Failures, OfRanksOverNccl) {
  fail_each_call(over_nccl, spec_of(test::Case{kTinyLlama, "data: 2, sharding: zero3, global_batch: 2"}));
}

}  // namespace
}  // namespace orrery
