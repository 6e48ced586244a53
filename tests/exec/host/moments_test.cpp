#include "exec/host/moments.h"

#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

TEST(Moments, BytesTellTheNumberOfElements) {
  for (std::int64_t n = 1; n < 3 * kMomentBlock; ++n)
    EXPECT_EQ(eight_bit_moments(n + 4 * ceil_div(n, kMomentBlock)), n);
}

// A buffer of 8-bit moments as the plan makes it, with a call of the update whose first operand it is.
struct Buffer {
  Buffer() : job(test::tiny_job("data: 1, optimizer: {name: adamw, states: 8bit}")), rank(job.rank(0)) {
    const std::uint32_t state = rank.states.front();
    bytes.resize(static_cast<std::size_t>(rank.plan.blocks[rank.plan.frames[state].block].buffers[kMoment1].bytes));
    argument = {bytes.data(), static_cast<Bytes>(bytes.size()), 1, 0, {}, nullptr, 0};
  }
  std::int64_t elements() const { return eight_bit_moments(static_cast<Bytes>(bytes.size())); }

  test::Job job;
  Rank rank;
  std::vector<std::byte> bytes;
  Argument argument;
};

TaskId task_of_update(const Plan& plan) {
  TaskId t = 0;
  while (!std::holds_alternative<Update>(plan.op_of(t).work)) ++t;
  return t;
}

// A part of the elements that begins within a block widens the complete block, and leaves what was not changed.
TEST(Moments, RoundBlocksOfAnyRange) {
  Buffer buffer;
  const Text text = checked_text(std::string(100, 'a'), 256, 16);
  RunState state = run_state(buffer.rank, text, {});
  Launch launch;
  launch.task = task_of_update(buffer.rank.plan);
  const CpuCall call(state, launch);
  const std::int64_t n = buffer.elements();
  const auto view = [&](std::int64_t first, std::int64_t elements) {
    return Moments(call, buffer.argument, kernels::MomentSign::either, {.elements = elements, .first = first});
  };
  EXPECT_EQ(*view(0, n).at(0), 0);
  {
    const Moments all = view(0, n);
    for (std::int64_t i = 0; i < n; ++i) *all.at(i) = static_cast<float>(i % kMomentBlock == 0 ? 2 : 1e-3);
  }
  {
    const Moments some = view(300, 20);
    EXPECT_EQ(*some.at(kMomentBlock), 2);
    *some.at(310) = -2;
  }
  const Moments after = view(0, n);
  EXPECT_FLOAT_EQ(*after.at(310), -2 * 0.99296875F);  // the dynamic map has no -1
  EXPECT_NEAR(*after.at(311), 1e-3, 1e-4);
  EXPECT_EQ(*after.at(2 * kMomentBlock), 2);
}

}  // namespace
}  // namespace orrery
