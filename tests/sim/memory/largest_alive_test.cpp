// The names of the buffers that are alive at a task.
#include "sim/memory/largest_alive.h"

#include <gtest/gtest.h>

#include "models/plan/plan.h"

namespace orrery {
namespace {

constexpr Bytes kGibibyte = Bytes{1} << 30;

TEST(LargestAlive, CountsBuffersOfOneNameOnTheDevice) {
  Plan plan;
  Block block;
  block.buffers = {{.name = "logits", .bytes = kGibibyte},
                   {.name = "logits", .bytes = kGibibyte},
                   {.name = "copy", .bytes = 4 * kGibibyte, .home = MemoryTier::host},
                   {.name = "input", .bytes = kGibibyte / 2}};
  plan.blocks = {block};
  plan.frames = {{.block = 0, .slot = 0}};
  plan.buffers = 4;
  const auto own = [](std::uint16_t slot) { return Operand{.scope = Scope::own, .slot = slot}; };
  plan.ops.resize(2);
  plan.ops[0].allocates = {own(0), own(2), own(3)};
  plan.ops[0].frees = {own(3)};
  plan.ops[1].allocates = {own(1)};
  plan.ops[1].frees = {own(0), own(1)};
  plan.tasks = {{.op = 0}, {.op = 1}, {}};
  plan.classes = {{.begin = 0, .end = 2}};
  const auto alive = [&](TaskId at) {
    std::vector<char> marks(plan.buffers);
    return largest_alive(plan, at, marks);
  };
  EXPECT_EQ(alive(0), (std::vector<std::string>{"1.00 GiB logits x 1", "0.50 GiB input x 1"}));
  EXPECT_EQ(alive(1), (std::vector<std::string>{"2.00 GiB logits x 2"})) << "what the task frees still counts";
}

}  // namespace
}  // namespace orrery
