// Activation eviction (BPipe): evicted activations come back to their place before they are read.
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

TEST(Moves, EveryBufferComesBackBeforeItIsRead) {
  const Plan plan = make_plan(spec_of(kSmall, "pipeline: 4, global_batch: 8, schedule: bpipe"));
  std::size_t sent = 0;
  for (const RankClass& slot : plan.classes) {
    std::map<std::uint32_t, Bytes> away;  // by buffer
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const Op& op = plan.op_of(t);
      const std::uint32_t frame = plan.tasks[t].frame;
      const auto buffer = [&](const Operand& o) { return plan.frames[frame_of(plan, frame, o)].first_buffer + o.slot; };
      if (slot.stage == 0 && op.lane == LaneKind::send_partner) {
        away[buffer(op.operands[0])] = std::get<Transfer>(op.work).bytes;
        EXPECT_EQ(std::get<Transfer>(op.work).offset, 3);
        ++sent;
      } else if (slot.stage == 0 && op.lane == LaneKind::receive_partner) {
        EXPECT_EQ(away.at(buffer(op.operands[0])), std::get<Transfer>(op.work).bytes);
        away.erase(buffer(op.operands[0]));
      } else {
        for (const Operand& o : op.operands) EXPECT_FALSE(away.contains(buffer(o))) << op.name;
      }
    }
    EXPECT_TRUE(away.empty());
  }
  EXPECT_GT(sent, 0U);
}

// Several stages evict to partners at different distances: their sends are different ops.
TEST(Moves, EveryStageHasItsOwnPartner) {
  const std::string model = "name: small, layers: 6, hidden: 64, heads: 4, feed_forward: 128, vocab: 256";
  const Plan plan = make_plan(spec_of(model, "pipeline: 6, global_batch: 12, schedule: bpipe"));
  std::map<std::int64_t, std::set<std::int64_t>> offsets;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (op.lane == LaneKind::send_partner)
      offsets[plan.classes[plan.slot_of(t)].stage].insert(std::get<Transfer>(op.work).offset);
  }
  EXPECT_EQ(offsets.at(0), std::set<std::int64_t>{5});
  EXPECT_EQ(offsets.at(1), std::set<std::int64_t>{3});
}

// With two stages, BPipe evicts no activations: the plan is that of 1F1B.
TEST(Moves, TwoStagesHaveNothingToBalance) {
  const auto tasks = [](const std::string& schedule) {
    return make_plan(spec_of(kSmall, "pipeline: 2, global_batch: 8, schedule: " + schedule)).task_count();
  };
  EXPECT_EQ(tasks("bpipe"), tasks("1f1b"));
}

TEST(Moves, RefuseWhatTheOtherStageCannotKeep) {
  const auto refused = [](const std::string& model, const std::string& more, const std::string& what) {
    try {
      make_plan(spec_of(model, "pipeline: 4, global_batch: 8, schedule: bpipe" + more));
      ADD_FAILURE() << more;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    }
  };
  refused(kSmall, ", offload: {activations: cpu}",
          "strategy.offload: offload with activations that another stage keeps (bpipe)");
  refused(std::string(kSmall) + ", moe: {experts: 4, top_k: 2, feed_forward: 64}", "",
          "with experts: not built yet: the other stage does not know their sizes");
}

}  // namespace
}  // namespace orrery
