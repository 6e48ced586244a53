// Stages with several replicas: transfers between them, the work of each rank, refused settings.
#include <gtest/gtest.h>

#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

const std::string kModel =
    "name: m, layers: 8, hidden: 64, heads: 8, feed_forward: 256, vocab: 256, tied_embeddings: false";

const std::string kTied =
    "name: m, layers: 8, hidden: 64, heads: 8, feed_forward: 256, vocab: 256, tied_embeddings: true";

Plan plan_with(const std::string& strategy) { return make_plan(test::spec_of(kModel, strategy)); }

// Bytes that a slot's tasks send, or receive, in forward.
Bytes crossed(const Plan& plan, const RankClass& slot, bool send) {
  Bytes sum = 0;
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    const auto* transfer = std::get_if<Transfer>(&plan.op_of(t).work);
    if (transfer != nullptr && transfer->send == send && plan.op_of(t).phase == Phase::forward) sum += transfer->bytes;
  }
  return sum;
}

double flops_of(const Plan& plan, const RankClass& slot) {
  double sum = 0;
  for (TaskId t = slot.begin; t < slot.end; ++t) sum += cost_of(plan.op_of(t).work, plan.element_bytes).flops;
  return sum;
}

// Every sample of a micro-batch is sent by one rank and received by one, whatever the numbers of replicas of the two
// stages; each end knows the other (make_plan checks this), and so do all ranks of the unfolded plan.
TEST(Replicas, PassEverySampleOnce) {
  for (const auto& [a, b, micro_batch] : {std::tuple{2, 1, 2}, {1, 3, 3}, {2, 3, 6}, {4, 6, 12}, {4, 4, 4}}) {
    for (const int data : {1, 2}) {
      const Plan plan = plan_with(fmt::format(
          "pipeline: 2, data: {}, stage_replicas: [{}, {}], schedule: dapple, micro_batch: {}, global_batch: {}", data,
          a, b, micro_batch, 4 * micro_batch * data));
      ASSERT_EQ(plan.classes.size(), static_cast<std::size_t>(a + b));
      const Bytes whole = Bytes{4} * micro_batch * 32 * 64 * plan.element_bytes;
      for (const RankClass& slot : plan.classes) {
        EXPECT_EQ(slot.multiplicity, data);
        EXPECT_EQ(crossed(plan, slot, true), slot.stage == 0 ? whole / a : 0);
        EXPECT_EQ(crossed(plan, slot, false), slot.stage == 1 ? whole / b : 0);
      }
      const Plan all = unfold(plan);
      EXPECT_EQ(all.classes.size(), static_cast<std::size_t>((a + b) * data));
      for (TaskId t = 0; t < all.task_count(); ++t) {
        const bool transfer = std::holds_alternative<Transfer>(all.op_of(t).work);
        EXPECT_TRUE(!transfer || all.members_of(all.tasks[t].match).size() == 2);
      }
    }
  }
}

// Two ranks for each stage, which share micro-batches of two samples, compute what two replicas of one sample do.
TEST(Replicas, OfAllStagesAlikeAreDataParallel) {
  const Plan shared =
      plan_with("pipeline: 2, stage_replicas: [2, 2], schedule: 1f1b, micro_batch: 2, global_batch: 16");
  const Plan plain = plan_with("pipeline: 2, data: 2, schedule: 1f1b, micro_batch: 1, global_batch: 16");
  for (const RankClass& slot : shared.classes)
    EXPECT_EQ(flops_of(shared, slot), flops_of(plain, plain.classes[slot.stage]));
}

// Each stage reduces gradients only over its own ranks, of which stages may have different numbers.
TEST(Replicas, ReduceTheirOwnStage) {
  const Plan plan =
      plan_with("pipeline: 2, stage_replicas: [4, 1], schedule: dapple, micro_batch: 4, global_batch: 16");
  const GroupTable& data = plan.dimensions[static_cast<std::size_t>(Dimension::data)];
  EXPECT_EQ(data.groups[data.member_of[0]].size(), 4U);
  EXPECT_EQ(data.groups[data.member_of[4]].size(), 1U);
  for (const RankClass& slot : plan.classes) {
    int reductions = 0;
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      reductions += c != nullptr && c->group == Dimension::data ? 1 : 0;
    }
    EXPECT_EQ(reductions > 0, slot.stage == 0) << slot.name;
  }
}

// The optimizer states of a stage are divided over the ranks of that stage.
TEST(Replicas, ShardTheirOwnStage) {
  const Plan plan = plan_with(
      "pipeline: 2, stage_replicas: [4, 2], sharding: zero1, stage_layers: [4, 4], micro_batch: 4, global_batch: 16");
  std::vector<Bytes> moments;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (block.role == BlockRole::state) moments.push_back(block.buffers[kMoment1].bytes);
  }
  ASSERT_EQ(moments.size(), 6U);
  EXPECT_EQ(moments[0], moments[3]);
  EXPECT_NEAR(static_cast<double>(moments[4]) / static_cast<double>(moments[0]), 2, 0.05);
}

// With sequences cut over tensor ranks, every row of a micro-batch is sent by exactly one of them and received by one.
TEST(Replicas, PassEveryRowOnceWhereTensorRanksHaveParts) {
  for (const char* order : {"tp-cp-dp-pp", "pp-dp-cp-tp"}) {
    for (const auto& [a, b, micro_batch] : {std::tuple{2, 1, 2}, {2, 3, 6}, {4, 4, 4}}) {
      const Plan plan = plan_with(
          fmt::format("tensor: 4, pipeline: 2, data: 2, stage_replicas: [{}, {}], schedule: dapple, micro_batch: {}, "
                      "global_batch: {}, rank_order: {}",
                      a, b, micro_batch, 8 * micro_batch, order));
      ASSERT_EQ(plan.classes.size(), static_cast<std::size_t>((a + b) * 4));
      const Bytes whole = Bytes{4} * micro_batch * 32 * 64 * plan.element_bytes;
      for (const RankClass& slot : plan.classes) {
        EXPECT_EQ(slot.multiplicity, 2);
        EXPECT_EQ(crossed(plan, slot, true), slot.stage == 0 ? whole / a / 4 : 0);
        EXPECT_EQ(crossed(plan, slot, false), slot.stage == 1 ? whole / b / 4 : 0);
      }
      const Plan all = unfold(plan);
      for (TaskId t = 0; t < all.task_count(); ++t) {
        const bool transfer = std::holds_alternative<Transfer>(all.op_of(t).work);
        EXPECT_TRUE(!transfer || all.members_of(all.tasks[t].match).size() == 2);
      }
    }
  }
}

// Reduction of a token-embedding table on both ends: equally many replicas on each end sum it pairwise after their own
// reductions; else all ranks of both ends reduce it together, and shard its states.
TEST(Replicas, SumAWordTableOverBothEnds) {
  for (const auto& [ranks, name, size] :
       {std::tuple{"[2, 1, 2]", "reduce tied embedding", 2U}, {"[2, 1, 1]", "reduce gradients", 6U}}) {
    const Plan plan = make_plan(test::spec_of(
        kTied,
        fmt::format("pipeline: 3, data: 2, stage_replicas: {}, sharding: zero1, micro_batch: 2, global_batch: 16",
                    ranks)));
    for (const RankClass& slot : plan.classes) {
      int sums = 0;
      for (TaskId t = slot.begin; t < slot.end; ++t) {
        const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
        if (c == nullptr || c->group != Dimension::embedding || plan.op_of(t).name != name) continue;
        ++sums;
        const GroupTable& ends = plan.dimensions[static_cast<std::size_t>(Dimension::embedding)];
        EXPECT_EQ(ends.groups[ends.member_of[slot.representative]].size(), size) << ranks;
      }
      EXPECT_EQ(sums, slot.stage == 1 ? 0 : 1) << ranks << ", " << slot.name;
    }
  }
}

TEST(Replicas, AreRefusedWhereTheyAreNotBuilt) {
  for (const auto& [more, expected] : std::vector<std::pair<std::string, std::string>>{
           {"schedule: pipedream, clip: 0",
            "updates while micro-batches are on their way (pipedream) with stage_replicas: not built yet"},
           {"schedule: chimera, overlap: {gradient_reduce: false}",
            "several copies of the model (dualpipe, chimera) with stage_replicas"},
           {"schedule: vocab-1f1b", "a vocabulary that all stages share with stage_replicas"},
           {"schedule: vocab-v-half, tensor: 4, tensor_kind: 2d",
            "(2d, 2.5d, 3d) with a vocabulary that all stages share"},
           {"schedule: dapple, context: 2", "strategy.context: context above 1 with stage_replicas: not built yet"},
           {"schedule: dapple, sharding: hsdp, shard_group: 1", "choose none, zero1, zero2, zero3 or fsdp"},
           {"schedule: dapple, sharding: zero1, offload: {optimizer: cpu}",
            "strategy.offload: offload with stage_replicas: not built yet"}}) {
    try {
      plan_with("pipeline: 2, stage_replicas: [2, 1], micro_batch: 2, global_batch: 8, " + more);
      FAIL() << more;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
  try {
    make_plan(
        test::spec_of(kTied, "pipeline: 2, stage_replicas: [2, 1], sharding: fsdp, micro_batch: 2, global_batch: 8"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(
                  "choose none or zero1 and gradients on the device, or as many ranks for the last stage"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace orrery
