// Transfers between stages as tasks: how many, how large, batched or not, and the tasks that wait for them.
#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

struct Sent {
  int sends = 0, receives = 0, batched = 0;
  Bytes bytes = 0;
};

Sent sent(const Plan& plan, std::uint32_t slot) {
  Sent s;
  for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
    const auto* transfer = std::get_if<Transfer>(&plan.op_of(t).work);
    if (transfer == nullptr) continue;
    ++(transfer->send ? s.sends : s.receives);
    if (transfer->send) s.bytes += transfer->bytes;
    s.batched += (plan.tasks[t].flags & kJoinsPrevious) != 0;
  }
  return s;
}

// A micro-batch of b samples of s tokens sends s b h activations forward over each boundary of two stages and as many
// gradients back, v times where each stage has v chunks; sequence parallelism divides them among t tensor ranks.
TEST(Emit, PointToPointVolume) {
  for (const int p : {2, 4}) {
    for (const int v : {1, 2}) {
      for (const int t : {1, 4}) {
        for (const bool sp : {false, true}) {
          const Plan plan = make_plan(test::spec_of(
              test::kSmall, fmt::format("pipeline: {}, virtual_stages: {}, tensor: {}, sequence_parallel: {}, "
                                        "micro_batch: 2, global_batch: 16",
                                        p, v, t, sp && t > 1)));
          const Bytes one = 32 * 2 * 64 * 2 / (sp ? t : 1);
          for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
            const int last = static_cast<int>(slot) == p - 1, first = slot == 0;
            const Sent s = sent(plan, slot);
            EXPECT_EQ(s.sends, 8 * (2 * v - last - first));
            EXPECT_EQ(s.receives, s.sends);
            EXPECT_EQ(s.bytes, s.sends * one);
          }
        }
      }
    }
  }
}

// Compute that waits for a send, before a stage's first backward and after its last forward, and between them.
std::pair<int, int> waits_for_sends(const char* overlap) {
  const Plan plan = make_plan(test::spec_of(
      test::kSmall,
      fmt::format("pipeline: 4, virtual_stages: 2, schedule: interleaved, global_batch: 16, overlap: {{{}}}",
                  overlap)));
  const RankClass& slot = plan.classes[1];
  const auto runs = [&](TaskId t, bool forward) {
    return plan.op_of(t).lane == LaneKind::compute && (plan.op_of(t).phase == Phase::forward) == forward &&
           plan.op_of(t).phase != Phase::step;
  };
  TaskId first = slot.begin, last = slot.end - 1;
  while (!runs(first, false)) ++first;
  while (!runs(last, true)) --last;
  std::pair<int, int> waits;
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    if (plan.op_of(t).lane != LaneKind::compute) continue;
    for (const TaskId d : plan.dependencies_of(t)) {
      const auto* transfer = std::get_if<Transfer>(&plan.op_of(d).work);
      if (transfer != nullptr && transfer->send) ++(t < first || t > last ? waits.first : waits.second);
    }
  }
  return waits;
}

// Megatron-Core's overlap_p2p_communication_warmup_flush: whether sends run under compute also while the pipeline fills
// and drains.
TEST(Emit, WaitsForSendsAtTheEndsOfAStepAlone) {
  EXPECT_EQ(waits_for_sends("pipeline: true"), std::pair(0, 0));
  const auto ends = waits_for_sends("pipeline: true, pipeline_ends: false");
  const auto all = waits_for_sends("pipeline: false");
  EXPECT_GT(ends.first, 0);
  EXPECT_LE(ends.second, 1);  // at most the wait before the last backward that follows a forward
  EXPECT_GT(all.second, 10);
}

TEST(Emit, BatchesWhereTheStackDoes) {
  for (const char* schedule : {"1f1b", "interleaved", "gpipe"}) {
    const bool chunked = std::string(schedule) == "interleaved";
    const auto batched = [&](bool on) {
      const Plan plan = make_plan(test::spec_of(
          test::kSmall,
          fmt::format("pipeline: 4, schedule: {}, virtual_stages: {}, global_batch: 8", schedule, chunked ? 2 : 1), 32,
          fmt::format("profile: orrery, batched_p2p: {}", on)));
      return sent(plan, 1).batched;
    };
    EXPECT_GT(batched(true), 0) << schedule;
    EXPECT_EQ(batched(false), 0) << schedule;
  }
}

// DeepSpeed synchronises its device before every forward: also of a virtual stage that has its input from another of
// the same stage.
TEST(Emit, BlockingForwardsWaitAtEveryVirtualStage) {
  const Plan plan =
      make_plan(test::spec_of(test::kSmall, "pipeline: 2, virtual_stages: 2, schedule: zb-v, global_batch: 4", 32,
                              "profile: orrery, blocking_forwards: true"));
  for (const RankClass& slot : plan.classes) {
    int waits = 0;
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const auto* wait = std::get_if<Wait>(&plan.op_of(t).work);
      waits += wait != nullptr && wait->device ? 1 : 0;
    }
    EXPECT_EQ(waits, 2 * 4) << slot.name;
  }
}

// Without overlap of transfers and compute, the next action waits for the sends before it.
TEST(Emit, SendsBlockWithoutOverlap) {
  for (const bool overlap : {false, true}) {
    const Plan plan = make_plan(
        test::spec_of(test::kSmall, fmt::format("pipeline: 2, global_batch: 4, overlap: {{pipeline: {}}}", overlap)));
    int waits = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (plan.op_of(t).lane != LaneKind::compute) continue;
      for (const TaskId d : plan.dependencies_of(t)) {
        const auto* transfer = std::get_if<Transfer>(&plan.op_of(d).work);
        waits += transfer != nullptr && transfer->send;
      }
    }
    EXPECT_EQ(waits > 0, !overlap);
  }
}

// Stacks that add a micro-batch's gradients after its backward do so for all but the last, whose sums are reduced as
// they come.
TEST(Emit, GradientsAreAddedAfterBackward) {
  const auto plan_of = [](bool late) {
    return make_plan(test::spec_of(
        test::kSmall, "global_batch: 3, micro_batch: 1", 32,
        fmt::format("profile: orrery, gradient_accumulation_fusion: false, accumulates_after_backward: {}", late)));
  };
  const Plan late = plan_of(true), soon = plan_of(false);
  EXPECT_EQ(late.task_count(), soon.task_count());
  for (const std::int32_t micro_batch : {0, 1, 2}) {
    TaskId first_sum = kNone, last_other = 0;
    for (TaskId t = 0; t < late.task_count(); ++t) {
      const Op& op = late.op_of(t);
      if (op.phase != Phase::backward || late.frames[late.tasks[t].frame].micro_batch != micro_batch) continue;
      if (std::holds_alternative<Accumulate>(op.work))
        first_sum = std::min(first_sum, t);
      else
        last_other = t;
    }
    EXPECT_EQ(first_sum > last_other, micro_batch < 2) << micro_batch;
  }
}

// Narayanan et al. 2021, section 4.1: tensor ranks that hold the same hidden states send a part of them each.
TEST(Emit, TransfersSayInHowManyPartsTheyGo) {
  const auto parts = [](const char* strategy, const char* software) {
    const Plan plan = make_plan(test::spec_of(std::string(test::kSmall), strategy, 32, software));
    std::pair<std::int64_t, std::int64_t> of;  // forward, backward
    for (const Op& op : plan.ops) {
      if (const auto* t = std::get_if<Transfer>(&op.work))
        (op.phase == Phase::forward ? of.first : of.second) = t->parts;
    }
    return of;
  };
  constexpr const char* whole = "tensor: 4, pipeline: 2, global_batch: 4, sequence_parallel: false";
  constexpr const char* cut = "tensor: 4, pipeline: 2, global_batch: 4, sequence_parallel: true";
  EXPECT_EQ(parts(whole, "profile: orrery"), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(parts(whole, "profile: orrery, scattered_sends: activations"), std::pair(std::int64_t{4}, std::int64_t{1}));
  EXPECT_EQ(parts(whole, "profile: orrery, scattered_sends: all"), std::pair(std::int64_t{4}, std::int64_t{4}));
  EXPECT_EQ(parts(cut, "profile: orrery, scattered_sends: all"), std::pair(std::int64_t{1}, std::int64_t{1}));
}

// Woven, the backward begins, and the two alternate at the transfers of tokens alone: not at the counts, for which the
// host waits.
TEST(Emit, WovenActionsAlternateAtTokens) {
  const Plan plan = make_plan(test::spec_of(
      "name: moe, layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 64, moe: {experts: 8, top_k: 2, "
      "feed_forward: 64}",
      "data: 2, expert: 2, global_batch: 8, overlap: {micro_batches: true}"));
  std::vector<std::string> tokens;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const std::string& name = plan.op_of(t).name;
    if (name == "dispatch" || name == "combine" || name == "dispatch gradient" || name == "combine gradient")
      tokens.push_back(name);
  }
  const auto first = std::find(tokens.begin(), tokens.end(), "combine gradient");
  ASSERT_GE(tokens.end() - first, 8);
  const std::vector<std::string> layer = {"combine gradient", "dispatch", "dispatch gradient", "combine"};
  EXPECT_TRUE(std::equal(layer.begin(), layer.end(), first));
  EXPECT_TRUE(std::equal(layer.begin(), layer.end(), first + 4));
}

}  // namespace
}  // namespace orrery
