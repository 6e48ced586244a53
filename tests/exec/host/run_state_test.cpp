#include "exec/host/run_state.h"

#include <gtest/gtest.h>

#include "tests/exec/jobs.h"

namespace orrery {
namespace {

TEST(RunState, HasARotaryTableWhereTheModelRotates) {
  const Text text(std::string(100, 'x'), 64);
  const test::Job rope = test::tiny_job("global_batch: 1");
  const test::Job learned = test::tiny_job("global_batch: 1", test::kTiny + ", positions: learned");
  const Rank rotates = rope.rank(0), does_not = learned.rank(0);
  const RunState state = run_state(rotates, text, {});
  EXPECT_EQ(state.rotary.half, rope.spec.model.head_dim / 2);
  EXPECT_EQ(static_cast<std::int64_t>(state.rotary.cosine.size()), rope.spec.sequence * state.rotary.half);
  EXPECT_EQ(state.rotary.cosine[0], 1);
  EXPECT_TRUE(run_state(does_not, text, {}).rotary.cosine.empty());
}

}  // namespace
}  // namespace orrery
