// The executor with one of its event waits left out: the null GPU must see that accesses have lost their order.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/exec/cuda/null_gpu/null_gpu.h"
#include "tests/exec/cuda/on_gpu.h"

namespace orrery {
namespace {

void run(const Spec& spec) {
  cuda::SharedGpu gpu;
  test::run_on_threads(
      spec,
      [&](const Rank& rank, QueuedTransport& transport) {
        return std::make_unique<cuda::CudaDevice>(rank, gpu, transport, false);
      },
      1);
}

struct Found {
  int waits = 0, found = 0;
  std::string others;  // the waits that were not found
};

// Leaves out every k-th wait of a step that adds an order, one in each run.
Found leave_out_some(const Spec& spec, std::int64_t every) {
  null_gpu::set_slowness(20);
  run(spec);
  const std::int64_t waits = null_gpu::calls()[null_gpu::kOrders];
  Found result;
  for (std::int64_t number = 1; number <= waits; number += every) {
    null_gpu::begin();
    null_gpu::leave_out_wait(number);
    run(spec);
    null_gpu::leave_out_wait(0);
    ++result.waits;
    if (!null_gpu::complaints().empty())
      ++result.found;
    else
      result.others += "  not found: " + null_gpu::left_out_wait() + '\n';
  }
  null_gpu::set_slowness(1);
  return result;
}

// Waits of one stream for another are left out, and the check for races should find that. It cannot find all: another
// wait may order the same accesses, or the host may have seen the end. So the share found is only printed; but none
// found means that the check does not work.
TEST(Order, AWaitThatIsLeftOutIsFound) {
  for (const char* strategy :
       {"data: 2, sharding: zero3, global_batch: 2", "pipeline: 2, data: 1, sharding: none, global_batch: 2",
        "data: 1, global_batch: 2, offload: {optimizer: {device: cpu, tile: 9001}, activations: cpu}"}) {
    SCOPED_TRACE(strategy);
    const Found f = leave_out_some(spec_of(test::Case{test::kLlama, strategy}), 7);
    EXPECT_GT(f.waits, 5);
    EXPECT_GT(f.found, 0) << "of " << f.waits;
    fmt::print("{} of {} waits found: {}\n{}", f.found, f.waits, strategy, f.others);
  }
}

}  // namespace
}  // namespace orrery
