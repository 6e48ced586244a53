// Plans with a master or servers: the weights that each rank holds, sends and updates.
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using test::elements_moved;
using test::spec_of;

Plan servers_plan(const std::string& servers, const std::string& strategy = "data: 4, global_batch: 8") {
  return make_plan(
      spec_of(test::kSmall, fmt::format("{}, sharding: parameter-server, parameter_server: {}", strategy, servers)));
}

std::int64_t server_weights(const Plan& plan) {
  std::int64_t sum = 0;
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0).front())) sum += p.local.out * p.local.in;
  return sum;
}

Bytes state_bytes(const Plan& plan, std::uint32_t slot, Category category) {
  Bytes sum = 0;
  for (const BlockBuffer& s : plan.blocks[plan.frames[states_of(plan, slot).front()].block].buffers)
    sum += s.category == category ? s.bytes : 0;
  return sum;
}

// Each worker pushes and pulls every weight once: 2 Psi bytes per worker, to and from the servers.
TEST(Servers, WorkersPushAndPullEveryWeightOnce) {
  for (const char* more : {"", ", bucket_MiB: 0.05", ", overlap: {gradient_reduce: false, parameter_gather: false}"}) {
    const Plan plan = servers_plan("{servers: 3}", fmt::format("data: 4, global_batch: 8{}", more));
    ASSERT_EQ(plan.classes.size(), 2U);
    for (const std::uint32_t slot : {0U, 1U}) {
      EXPECT_EQ(elements_moved(plan, slot, Dimension::world, CollectiveKind::push), server_weights(plan));
      EXPECT_EQ(elements_moved(plan, slot, Dimension::world, CollectiveKind::pull), server_weights(plan));
    }
  }
}

// Every weight is updated by one server and by no worker; servers hold equal ranges of every bucket in host memory.
TEST(Servers, HoldEveryWeightOnce) {
  const Plan plan = unfold(servers_plan("{servers: 3}", "data: 4, global_batch: 8, bucket_MiB: 0.05"));
  ASSERT_EQ(plan.ranks, 7);
  std::vector<int> held(static_cast<std::size_t>(server_weights(plan)), 0);
  std::int64_t most = 0, least = server_weights(plan);
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) {
    EXPECT_EQ(plan.classes[s].server, s >= 4);
    EXPECT_EQ(updates(plan, plan.classes[s]), s >= 4);
    std::int64_t own = 0;
    for (const Piece& p : pieces_of(plan, states_of(plan, s).front(), s)) {
      for (std::int64_t i = 0; i < p.owned; ++i) ++held[static_cast<std::size_t>(p.owned_first + i)];
      own += p.owned;
    }
    if (s < 4) {
      EXPECT_EQ(own, 0);
      continue;
    }
    most = std::max(most, own);
    least = std::min(least, own);
  }
  EXPECT_EQ(std::set<int>(held.begin(), held.end()), (std::set<int>{1}));
  EXPECT_LE(most - least, 3 * static_cast<std::int64_t>(plan.classes.size()) * 8);
  EXPECT_EQ(state_bytes(plan, 0, Category::optimizer), 0);
  EXPECT_GT(state_bytes(plan, 4, Category::optimizer), 0);
  for (const BlockBuffer& s : plan.blocks[plan.frames[states_of(plan, 4).front()].block].buffers)
    EXPECT_EQ(s.home, MemoryTier::host) << s.name;
}

// Servers stand beside workers, on one machine after the other; or one on each machine behind those of the workers.
TEST(Servers, StandOnMachines) {
  const Plan beside = servers_plan("{servers: 3}", "data: 16, global_batch: 16");
  EXPECT_EQ(beside.server_seats, (std::vector<std::int64_t>{0, 8, 1}));
  const Plan apart = servers_plan("{servers: 3, colocated: false}", "data: 16, global_batch: 16");
  EXPECT_EQ(apart.server_seats, (std::vector<std::int64_t>{16, 24, 32}));
  EXPECT_EQ(apart.seat_of(3), 3);
}

// Every range has as many holders as there are copies, on different machines; all holders update it.
TEST(Servers, ChainsHoldEveryWeightOnEveryCopy) {
  const Plan plan = unfold(servers_plan("{servers: 4, replicas: 3}", "data: 32, clip: 0, global_batch: 32"));
  ASSERT_EQ(plan.servers, 12);
  ASSERT_EQ(plan.ranges(), 4);
  std::vector<int> held(static_cast<std::size_t>(server_weights(plan)), 0);
  for (std::uint32_t s = 32; s < plan.classes.size(); ++s) {
    EXPECT_TRUE(updates(plan, plan.classes[s]));
    for (const Piece& p : pieces_of(plan, states_of(plan, s).front(), s)) {
      for (std::int64_t i = 0; i < p.owned; ++i) ++held[static_cast<std::size_t>(p.owned_first + i)];
    }
  }
  EXPECT_EQ(std::set<int>(held.begin(), held.end()), (std::set<int>{3}));
  std::map<std::int64_t, int> on_machine;
  for (std::int64_t s = 0; s < 4; ++s) {
    std::set<std::int64_t> machines;
    for (std::int64_t copy = 0; copy < 3; ++copy) machines.insert(plan.seat_of(32 + copy * 4 + s) / 8);
    EXPECT_EQ(machines.size(), 3U);
    for (const std::int64_t m : machines) ++on_machine[m];
  }
  EXPECT_EQ(on_machine, (std::map<std::int64_t, int>{{0, 3}, {1, 3}, {2, 3}, {3, 3}}));
}

TEST(Master, AloneHoldsOptimizerOutputsAndLoss) {
  const Plan plan = make_plan(spec_of(test::kSmall, "data: 4, sharding: data-parallel, global_batch: 4"));
  ASSERT_EQ(plan.classes.size(), 2U);
  EXPECT_EQ(plan.classes[0].multiplicity, 1);
  EXPECT_EQ(plan.classes[1].multiplicity, 3);
  EXPECT_GT(state_bytes(plan, 0, Category::optimizer), 0);
  EXPECT_EQ(state_bytes(plan, 1, Category::optimizer), 0);
  std::map<std::uint32_t, std::int64_t> losses;  // rows of the loss, by slot
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* c = std::get_if<CrossEntropy>(&plan.op_of(t).work);
    if (c != nullptr && c->part == CrossEntropy::Part::loss) losses[plan.slot_of(t)] += c->rows;
  }
  EXPECT_EQ(losses, (std::map<std::uint32_t, std::int64_t>{{0, 4 * 32}}));
  for (const std::uint32_t slot : {0U, 1U}) {
    EXPECT_EQ(elements_moved(plan, slot, Dimension::data, CollectiveKind::broadcast), server_weights(plan));
    EXPECT_EQ(elements_moved(plan, slot, Dimension::data, CollectiveKind::reduce), server_weights(plan));
    EXPECT_EQ(elements_moved(plan, slot, Dimension::data, CollectiveKind::gather), 4 * 32 * 256);
  }
}

TEST(Master, OfOneRankIsPlain) {
  const Plan plan = make_plan(spec_of(test::kSmall, "data: 1, sharding: data-parallel, global_batch: 1"));
  EXPECT_EQ(plan.classes.size(), 1U);
  EXPECT_TRUE(updates(plan, plan.classes[0]));
}

}  // namespace
}  // namespace orrery
