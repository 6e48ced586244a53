// The places of transfers between the actions of a pipeline order.
#include "models/schedule/transfer_order.h"

#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

using Key = std::tuple<int, int, bool>;  // boundary, micro-batch, forward

std::vector<std::pair<std::string, ScheduleShape>> cases() {
  std::vector<std::pair<std::string, ScheduleShape>> all;
  for (const std::int64_t p : {1, 2, 3, 4, 5}) {
    for (const std::int64_t m : {1, 2, 5, 10}) {
      for (const char* name : {"naive", "gpipe", "1f1b", "zb-h1", "zb-h2", "zb-1p"}) all.push_back({name, {p, m, 1}});
      if (p > 1) {
        for (const char* name : {"zb-v", "v-half", "v-min"}) all.push_back({name, {p, m, 2}});
        if (m >= 2 * p) all.push_back({"dualpipev", {p, m, 2}});
        if (p % 2 == 0 && m % 2 == 0) all.push_back({"chimera", {p, m, 1}});
        if (p % 4 == 0 && m % 4 == 0) all.push_back({"chimera-4", {p, m, 1}});
        if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p) all.push_back({"dualpipe", {p, m, 1}});
      }
      for (const std::int64_t v : {2, 3}) {
        if (m % p == 0 && p > 1) all.push_back({"interleaved", {p, m, v}});
      }
    }
  }
  return all;
}

// Every boundary between two stages is crossed once per micro-batch and direction, sent by one end and received by the
// other; v times the volume when interleaved.
TEST(TransferOrder, CrossEveryBoundaryOnce) {
  for (const auto& [name, shape] : cases()) {
    const Schedule schedule = make_schedule(name, shape);
    const TransferOrder transfer_order = order_transfers(schedule);
    std::map<Key, std::pair<int, int>> ends;  // sender, receiver
    for (std::size_t s = 0; s < transfer_order.size(); ++s) {
      for (const auto& turn : transfer_order[s]) {
        for (const StageTransfer& c : turn) {
          auto& [sender, receiver] = ends.try_emplace({c.boundary, c.micro_batch, c.forward}, -1, -1).first->second;
          int& end = c.send ? sender : receiver;
          EXPECT_EQ(end, -1) << name;
          end = static_cast<int>(s);
        }
      }
    }
    std::int64_t boundaries = 0;
    for (std::int64_t k = 0; k + 1 < schedule.virtual_stages(); ++k)
      boundaries += hop(schedule, static_cast<std::size_t>(k)) != 0 ? 1 : 0;
    EXPECT_EQ(static_cast<std::int64_t>(ends.size()), 2 * boundaries * shape.micro_batches) << name;
    for (const auto& [key, end] : ends) {
      const auto [boundary, micro_batch, forward] = key;
      EXPECT_EQ(end.first, schedule.stage_of[forward ? boundary : boundary + 1]) << name;
      EXPECT_EQ(end.second, schedule.stage_of[forward ? boundary + 1 : boundary]) << name;
    }
  }
}

// An action's input arrives before it, and its output is sent after it.
TEST(TransferOrder, StandAroundTheirActions) {
  for (const auto& [name, shape] : cases()) {
    const Schedule schedule = make_schedule(name, shape);
    const TransferOrder transfer_order = order_transfers(schedule);
    const auto count = static_cast<int>(schedule.virtual_stages());
    for (std::size_t s = 0; s < transfer_order.size(); ++s) {
      std::map<Key, std::size_t> received, sent;
      for (std::size_t i = 0; i < transfer_order[s].size(); ++i) {
        for (const StageTransfer& c : transfer_order[s][i])
          (c.send ? sent : received)[{c.boundary, c.micro_batch, c.forward}] = i;
      }
      for (std::size_t i = 0; i < schedule.order[s].size(); ++i) {
        const Action& a = schedule.order[s][i];
        if (a.phase == Phase::weight_gradient) continue;  // weight gradients cause no transfers between stages
        int k = 0;
        while (schedule.stage_of[k] != static_cast<int>(s) || schedule.chunk_of[k] != a.chunk) ++k;
        const bool forward = a.phase == Phase::forward;
        const int in = forward ? k - 1 : k, out = forward ? k : k - 1;  // boundaries
        const auto crosses = [&](int b) {
          return b >= k / count * count && b % count != count - 1 && hop(schedule, static_cast<std::size_t>(b)) != 0;
        };
        if (crosses(in)) {
          EXPECT_LE(received.at({in, a.micro_batch, forward}), i) << name;
        }
        if (crosses(out)) {
          EXPECT_GT(sent.at({out, a.micro_batch, forward}), i) << name;
        }
      }
    }
  }
}

// Both neighbours have their transfers of one direction in the same order, so that a queue cannot deadlock.
TEST(TransferOrder, NeighboursAgreeOnTheOrder) {
  for (const auto& [name, shape] : cases()) {
    const Schedule schedule = make_schedule(name, shape);
    const TransferOrder transfer_order = order_transfers(schedule);
    std::map<std::pair<std::int64_t, bool>, std::vector<Key>> sent, received;  // by sending stage and direction
    for (std::int64_t s = 0; s < shape.stages; ++s) {
      for (const auto& turn : transfer_order[s]) {
        for (const StageTransfer& c : turn) {
          const std::int64_t from = schedule.stage_of[c.forward ? c.boundary : c.boundary + 1];
          const bool next = c.forward == (hop(schedule, static_cast<std::size_t>(c.boundary)) > 0);
          (c.send ? sent : received)[{from, next}].push_back({c.boundary, c.micro_batch, c.forward});
        }
      }
    }
    EXPECT_EQ(sent, received) << name << " " << shape.stages << " " << shape.micro_batches << " " << shape.chunks;
  }
}

TEST(TransferOrder, RefuseOrdersThatWaitForEver) {
  Schedule schedule = make_schedule("1f1b", {2, 2, 1});
  std::swap(schedule.order[0][0], schedule.order[0][2]);  // the first stage runs a backward before the forward
  try {
    order_transfers(schedule);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("deadlock"), std::string::npos);
  }
}

// With the real times of phases, exchanges among all stages move to other places and none is lost; with equal times
// none moves.
TEST(TransferOrder, FollowTheTimesOfPhases) {
  for (const char* name : {"vocab-1f1b", "vocab-zb-v-alg1"}) {
    const std::int64_t chunks = find_schedule(name).chunks, p = 4;
    const std::vector<PhaseTimes> even(p * chunks + 2, PhaseTimes{}), uneven(p * chunks + 2, PhaseTimes{3, 17, 2});
    const Schedule schedule = make_schedule(name, {p, 2 * p, chunks, uneven});
    const auto places = [](const TransferOrder& transfer_order) {
      std::vector<std::tuple<std::size_t, std::size_t, int, int, bool>> all;  // stage, place in its order, transfer
      for (std::size_t s = 0; s < transfer_order.size(); ++s) {
        for (std::size_t i = 0; i < transfer_order[s].size(); ++i) {
          for (const StageTransfer& c : transfer_order[s][i])
            all.emplace_back(s, i, c.boundary, c.micro_batch, c.forward);
        }
      }
      return all;
    };
    EXPECT_EQ(places(order_transfers(schedule, even)), places(order_transfers(schedule))) << name;
    EXPECT_NE(places(order_transfers(schedule, uneven)), places(order_transfers(schedule))) << name;
    EXPECT_EQ(places(order_transfers(schedule, uneven)).size(), places(order_transfers(schedule)).size()) << name;
  }
}

}  // namespace
}  // namespace orrery
