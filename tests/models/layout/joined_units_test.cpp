#include "models/layout/joined_units.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/planner/make_plan.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// Bytes of gathered weights that are alive at once, in the order in which the host issues the tasks.
Bytes most_gathered(const Plan& plan) {
  std::map<std::pair<std::uint32_t, std::uint16_t>, Bytes> alive;
  Bytes now = 0, most = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Op& op = plan.op_of(t);
    const auto buffer = [&](const Operand& o) { return std::pair(frame_of(plan, plan.tasks[t].frame, o), o.slot); };
    const auto bytes = [&](const auto& b) { return plan.blocks[plan.frames[b.first].block].buffers[b.second].bytes; };
    for (const Operand& o : op.allocates) {
      if (o.scope == Scope::unit && o.slot == kGathered && alive.emplace(buffer(o), bytes(buffer(o))).second)
        now += bytes(buffer(o));
    }
    most = std::max(most, now);
    for (const Operand& o : op.frees) {
      if (o.scope == Scope::unit && o.slot == kGathered && alive.erase(buffer(o)) > 0) now -= bytes(buffer(o));
    }
  }
  EXPECT_EQ(now, 0);
  return most;
}

Spec joined(const std::string& units, const std::string& more = "sharding: fsdp") {
  return test::spec_of(test::kSmall, "data: 4, global_batch: 8, units: " + units + ", " + more);
}

std::int64_t gathered(const Plan& plan) {
  return test::elements_moved(plan, 0, Dimension::data, CollectiveKind::all_gather);
}
std::int64_t reduced(const Plan& plan) {
  return test::elements_moved(plan, 0, Dimension::data, CollectiveKind::reduce_scatter);
}

// Whatever the units, a step moves the same weights and gradients.
TEST(JoinedUnits, MoveTheSameBytes) {
  for (const char* sharding : {"sharding: fsdp", "sharding: zero3", "sharding: fsdp-grad-op",
                               "sharding: hsdp, shard_group: 2", "sharding: fsdp, no_sync: true"}) {
    const Plan layers = make_plan(joined("layer", sharding));
    for (const char* units : {"model", "2", "3", "100", "[[0, 7], [1, 2, 3]]", "[[0, 1, 2, 3, 4, 5, 6, 7]]"}) {
      const Plan plan = make_plan(joined(units, sharding));
      EXPECT_EQ(gathered(plan), gathered(layers)) << sharding << ' ' << units;
      EXPECT_EQ(reduced(plan), reduced(layers)) << sharding << ' ' << units;
    }
  }
}

// A rank keeps its share of every weight once, whatever the units.
TEST(JoinedUnits, KeepTheSameStates) {
  const auto kept = [](const Plan& plan) {
    Bytes sum = 0;
    for (const Frame& f : plan.frames) {
      const Block& block = plan.blocks[f.block];
      if (f.slot != 0 || block.role != BlockRole::state) continue;
      for (const BlockBuffer& b : block.buffers) sum += b.bytes;
    }
    return sum;
  };
  const Bytes layers = kept(make_plan(joined("layer")));
  EXPECT_GT(layers, 0);
  for (const char* units : {"model", "2", "3", "[[0, 7], [1, 2, 3]]"}) {
    EXPECT_NEAR(static_cast<double>(kept(make_plan(joined(units)))), static_cast<double>(layers), 100) << units;
  }
}

// One unit of the model is gathered whole; smaller ones are alive no more than are in flight and in use.
TEST(JoinedUnits, AreAliveTogether) {
  const std::int64_t layer = 64 * 64 * 4 + 3 * 64 * 256 + 2 * 64, ends = 2 * 256 * 64 + 64, width = 2;
  EXPECT_EQ(most_gathered(make_plan(joined("model"))), (8 * layer + ends) * width);
  EXPECT_EQ(most_gathered(make_plan(joined("2"))), 2 * 2 * layer * width);
  EXPECT_EQ(most_gathered(make_plan(joined("4"))), 2 * 4 * layer * width);
  EXPECT_EQ(most_gathered(make_plan(joined("layer"))), 2 * layer * width);
  EXPECT_EQ(most_gathered(make_plan(joined("2", "sharding: fsdp, prefetch_units: 0"))), 2 * layer * width);
}

// Units of a list lie side by side, wherever their layers are.
TEST(JoinedUnits, PlaceListedLayersSideBySide) {
  const Plan plan = make_plan(joined("[[0, 7]]"));
  std::map<std::int64_t, const Frame*> of_layer;
  for (const Frame& f : plan.frames) {
    if (f.micro_batch == 0 && plan.blocks[f.block].role == BlockRole::layer) of_layer[f.layer] = &f;
  }
  const std::int64_t elements = plan.blocks[of_layer.at(0)->block].parameter_elements;
  EXPECT_EQ(of_layer.at(0)->unit, of_layer.at(7)->unit);
  EXPECT_EQ(of_layer.at(7)->base, of_layer.at(0)->base + elements);
  EXPECT_EQ(of_layer.at(1)->base, of_layer.at(0)->base + 2 * elements);
  EXPECT_NE(of_layer.at(1)->unit, of_layer.at(2)->unit);
}

// Stages of a pipeline have units of their own.
TEST(JoinedUnits, EndWithTheirStage) {
  const Plan plan = make_plan(joined("model", "sharding: zero3, pipeline: 2"));
  std::map<std::uint32_t, std::set<std::uint32_t>> units;
  for (const Frame& f : plan.frames) {
    if (f.micro_batch == 0 && !plan.blocks[f.block].parameters.empty()) units[f.slot].insert(f.unit);
  }
  for (const auto& [slot, of] : units) EXPECT_EQ(of.size(), 1U) << slot;
}

}  // namespace
}  // namespace orrery
