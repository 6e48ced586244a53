// Updates that are validated in the next step: the places of the validation, and the numbers that it needs.
#include "models/planner/post_validation.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

struct Shape {
  const char* name;
  ScheduleShape shape;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t p : {2, 3, 4, 8}) {
    for (const std::int64_t m : {p, 2 * p, 3 * p}) {
      for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"}) all.push_back({name, {p, m, 1}});
      for (const char* name : {"zb-v", "v-half", "v-min", "interleaved"}) all.push_back({name, {p, m, 2}});
    }
  }
  return all;
}

// Calls f(whether a transfer between stages stands before its stage's validation).
template <class F>
void for_all_transfers(const TransferOrder& order, const std::vector<TransferPlace>& places, const F& f) {
  for (std::size_t s = 0; s < order.size(); ++s) {
    for (std::size_t t = 0; t < order[s].size(); ++t) {
      for (std::size_t c = 0; c < order[s][t].size(); ++c)
        f(order[s][t][c], t < places[s].turn || (t == places[s].turn && c < places[s].transfer));
    }
  }
}

TEST(PostValidation, NoTransferIsCutAndNothingHasRunBack) {
  for (const auto& [name, shape] : shapes()) {
    const Schedule schedule = make_schedule(name, shape);
    const TransferOrder order = order_transfers(schedule);
    const std::vector<TransferPlace> places = validation_places(schedule, order);
    std::map<std::tuple<int, int, bool>, int> ends;  // number of ends of each transfer that stand before the validation
    for_all_transfers(order, places, [&](const StageTransfer& c, bool before) {
      ends[{c.boundary, c.micro_batch, c.forward}] += before ? 1 : 0;
    });
    for (const auto& [key, count] : ends) EXPECT_NE(count, 1) << name;
    for (std::size_t s = 0; s < places.size(); ++s) {
      for (std::size_t i = 0; i < places[s].turn; ++i)
        EXPECT_EQ(schedule.order[s][i].phase, Phase::forward) << name << " stage " << s;
    }
  }
}

// The norm of all stages is known when the last stage has ended its step, p - 1 - stage forwards after this stage has
// ended its own: a stage runs at least that many forwards meanwhile.
TEST(PostValidation, StagesHaveForwardsToDoMeanwhile) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const char* name : {"zb-h2", "zb-2p"}) {
      const Schedule schedule = make_schedule(name, {p, 3 * p, 1});
      const std::vector<TransferPlace> places = validation_places(schedule, order_transfers(schedule));
      for (std::int64_t s = 0; s < p; ++s) EXPECT_GE(places[s].turn, p - 1 - s) << name << " " << p << " " << s;
    }
  }
}

Spec spec_with(const std::string& strategy) {
  return test::spec_of(test::kSmall, strategy, 32, "profile: orrery, post_update_validation: true");
}

std::int64_t count(const Plan& plan, std::string_view name) {
  std::int64_t n = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) n += plan.op_of(t).name == name ? 1 : 0;
  return n;
}

TEST(PostValidation, NormsGoThereAndBackAndNobodyMeets) {
  const Plan plan = make_plan(spec_with("pipeline: 4, data: 2, tensor: 2, global_batch: 16, schedule: zb-h2"));
  for (const char* name : {"send partial norm", "receive partial norm", "send whole norm", "receive whole norm"})
    EXPECT_EQ(count(plan, name), 3) << name;
  for (const Op& op : plan.ops) {
    const auto* c = std::get_if<Collective>(&op.work);
    EXPECT_FALSE(c != nullptr && c->group == Dimension::model) << op.name;
  }
  const Plan rank = instantiate(plan, 5);
  const RankClass& slot = rank.classes.front();
  EXPECT_EQ(rank.op_of(slot.validated).name, "validate update");
  EXPECT_TRUE(rank.op_of(slot.validated).host_waits);
  EXPECT_LE(slot.validation, slot.validated);
  for (TaskId t = 0; t < slot.validated; ++t) {
    const Op& op = rank.op_of(t);
    EXPECT_TRUE(op.phase == Phase::forward || t >= slot.validation) << op.name;
  }
}

// The first stage's norm waits for the gradients of a table that it shares with the last stage, without a circular
// wait.
TEST(PostValidation, NormsComeBehindASharedTable) {
  for (const char* schedule : {"1f1b", "zb-h2", "zb-2p"}) {
    const Plan plan = make_plan(test::spec_of(std::string(test::kSmall) + ", tied_embeddings: true",
                                              fmt::format("pipeline: 4, schedule: {}, global_batch: 8", schedule), 32,
                                              "profile: orrery, post_update_validation: true"));
    EXPECT_EQ(count(plan, "receive partial norm"), 3) << schedule;
  }
}

TEST(PostValidation, OneStageOrNoLimitWaitsForNobody) {
  for (const char* strategy : {"pipeline: 1, data: 2, global_batch: 4", "pipeline: 2, clip: 0, global_batch: 4"}) {
    const Plan plan = make_plan(spec_with(strategy));
    for (const RankClass& slot : plan.classes) EXPECT_EQ(slot.validated, kNone) << strategy;
  }
}

TEST(PostValidation, RefusesWhatIsNotBuilt) {
  for (const char* strategy : {"pipeline: 2, global_batch: 16, schedule: chimera",
                               "pipeline: 2, global_batch: 16, offload: {optimizer: cpu}"}) {
    try {
      make_plan(spec_with(strategy));
      ADD_FAILURE() << strategy;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("software.post_update_validation"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace orrery
