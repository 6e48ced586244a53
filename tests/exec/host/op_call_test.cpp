#include "exec/host/op_call.h"

#include <map>

#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

const std::string kCallModel =
    "name: tiny, layers: 2, hidden: 33, heads: 4, head_dim: 6, kv_heads: 2, feed_forward: 44, vocab: 67, dropout: 0.1, "
    "positions: learned, gated: false";

// Calls f(call) for every task of a rank.
template <class F>
void for_calls(const test::Job& job, std::int64_t number, const F& f) {
  const Rank rank = job.rank(number);
  const Text text(std::string(1000, 'x'), job.spec.model.vocab);
  RunState state = run_state(rank, text, {.seed = 5});
  CachingMemory memory(host_segments());
  Buffers buffers(rank, memory);
  for (TaskId t = 0; t < rank.plan.task_count(); ++t) f(OpCall(state, buffers.issue(t, [](TaskId) { return true; })));
}

// All ranks together count every weight once, whatever is cut, copied or sharded.
TEST(Call, NormStretchesCoverEveryWeightOnce) {
  const auto counted = [](const std::string& strategy) {
    const test::Job job = test::tiny_job(strategy, kCallModel);
    std::int64_t sum = 0;
    for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
      const std::int64_t copies = job.rank(r).position_in(Dimension::replicate).size;
      for_calls(job, r, [&](const OpCall& c) {
        if (!std::holds_alternative<SquaredNorm>(c.op.work)) return;
        for (const Stretch& s : norm_stretches(c, c.reads[0])) sum += s.count / copies;
      });
    }
    return sum;
  };
  const std::int64_t one = counted("data: 1, global_batch: 1");
  EXPECT_GT(one, 0);
  EXPECT_EQ(counted("data: 3, sharding: zero1, global_batch: 3"), one);
  EXPECT_EQ(counted("data: 2, sharding: fsdp, global_batch: 2"), one);
  EXPECT_EQ(counted("pipeline: 2, data: 1, global_batch: 2"), one);
}

// The dropout mask of an element depends on its position in the global batch of the step, not on the rank that holds
// it.
TEST(Call, MasksOfASampleAreTheSameOnWhicheverRankItIs) {
  const auto firsts = [](const std::string& strategy) {
    const test::Job job = test::tiny_job(strategy, kCallModel);
    std::map<std::string, std::vector<std::uint64_t>> by_op;
    for (std::int64_t r = 0; r < job.plan.ranks; ++r) {
      for_calls(job, r, [&](const OpCall& c) {
        const auto* residual = std::get_if<Residual>(&c.op.work);
        if (residual == nullptr || !residual->dropout || residual->direction == Direction::backward) return;
        for (const MaskPart& m : mask_parts(c, *residual))
          by_op[c.op.name + std::to_string(c.frame.layer)].push_back(m.dropout.index.first);
      });
    }
    for (auto& [name, places] : by_op) std::sort(places.begin(), places.end());
    return by_op;
  };
  const auto one = firsts("data: 1, global_batch: 4");
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(firsts("data: 2, global_batch: 4"), one);
  EXPECT_EQ(firsts("data: 2, micro_batch: 2, global_batch: 4"), one);
}

}  // namespace
}  // namespace orrery
