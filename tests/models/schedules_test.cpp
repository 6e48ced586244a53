// Pipeline orders: each action once, backward after forward, no more micro-batches in flight than the papers say; and
// the transfers that turns.cpp puts between them.
#include "models/schedules.h"

#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "models/error.h"
#include "models/turns.h"

namespace orrery {
namespace {

std::vector<ScheduleShape> shapes(bool chunked) {
  std::vector<ScheduleShape> all;
  for (const std::int64_t p : {1, 2, 3, 4, 8}) {
    for (const std::int64_t m : {1, 2, 3, 4, 8, 24}) {
      for (const std::int64_t v : chunked ? std::vector<std::int64_t>{1, 2, 3} : std::vector<std::int64_t>{1}) {
        if (!chunked || m % p == 0) all.push_back({p, m, v});
      }
    }
  }
  return all;
}

template <typename F>
void for_all(const F& f) {
  for (const ScheduleRow& row : schedule_rows()) {
    for (const ScheduleShape& shape : shapes(row.chunked)) f(row, shape, make_schedule(row.name, shape));
  }
}

TEST(Schedules, RunEveryActionOnce) {
  for_all([](const ScheduleRow& row, const ScheduleShape& shape, const Schedule& schedule) {
    ASSERT_EQ(schedule.order.size(), static_cast<std::size_t>(shape.stages)) << row.name;
    for (const auto& order : schedule.order) {
      std::set<std::pair<int, int>> forward, input, weight;
      for (const Action& a : order) {
        const std::pair<int, int> key = {a.chunk, a.micro_batch};
        if (a.phase == Phase::forward) {
          EXPECT_TRUE(forward.insert(key).second) << row.name;
          continue;
        }
        EXPECT_EQ(forward.count(key), 1U) << row.name << ": backward before forward";
        if (a.phase != Phase::weight_gradient) {
          EXPECT_TRUE(input.insert(key).second) << row.name;
        }
        if (a.phase != Phase::input_gradient) {
          EXPECT_EQ(input.count(key), 1U) << row.name << ": weight gradient before the input's";
          EXPECT_TRUE(weight.insert(key).second) << row.name;
        }
      }
      EXPECT_EQ(forward.size(), static_cast<std::size_t>(shape.micro_batches * shape.chunks)) << row.name;
      EXPECT_EQ(input.size(), forward.size()) << row.name;
      EXPECT_EQ(weight.size(), forward.size()) << row.name;
    }
  });
}

// The most forwards whose backward, or weight gradient where that runs apart, has not begun, counted in chunks.
std::int64_t in_flight(const std::vector<Action>& order) {
  std::int64_t now = 0, most = 0;
  for (const Action& a : order) {
    now += a.phase == Phase::forward ? 1 : a.phase == Phase::input_gradient ? 0 : -1;
    most = std::max(most, now);
  }
  return most;
}

// GPipe keeps all m; 1F1B p - stage; interleaved, for v >= 2, L (1 + (p - 1) / (p v)) layers' worth on the first stage:
// p v + p - 1 chunks of L / (p v) layers.
TEST(Schedules, KeepAsManyAsThePapersSay) {
  for_all([](const ScheduleRow& row, const ScheduleShape& shape, const Schedule& schedule) {
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      const std::int64_t most = in_flight(schedule.order[stage]);
      const std::int64_t m = shape.micro_batches, p = shape.stages, v = shape.chunks;
      if (row.name == "naive") {
        EXPECT_EQ(most, 1);
      }
      if (row.name == "gpipe") {
        EXPECT_EQ(most, m);
      }
      if (row.name == "1f1b" || row.name == "dapple") {
        EXPECT_EQ(most, std::min(m, p - stage));
      }
      if (row.name == "zb-h1" || row.name == "zb-1p") {
        EXPECT_LE(most, std::min(m, p)) << row.name;
      }
      if (row.name == "zb-h2") {
        EXPECT_LE(most, std::min(m, 2 * p - 1));
      }
      if (row.name == "zb-2p") {
        EXPECT_LE(most, std::min(m, 2 * p));
      }
      if (row.name == "interleaved" && v > 1) {
        EXPECT_EQ(most, std::min(m * v, (v + 1) * p - 1 - 2 * stage));
      }
    }
  });
}

// Times at which a stage's actions end, transfers taking none: a second evaluator beside the engine.
std::vector<std::pair<std::int64_t, std::int64_t>> spans_of(const Schedule& schedule, const PhaseTimes& times) {
  const auto stages = static_cast<int>(schedule.order.size());
  std::map<std::tuple<int, Phase, int>, std::int64_t> ended;  // (stage, F or I, micro-batch)
  std::vector<std::size_t> next(stages, 0);
  std::vector<std::pair<std::int64_t, std::int64_t>> spans(stages, {-1, 0});
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      if (next[s] == schedule.order[s].size()) continue;
      const Action& a = schedule.order[s][next[s]];
      const bool forward = a.phase == Phase::forward, input = a.phase == Phase::input_gradient;
      const int from = forward ? s - 1 : s + 1;
      std::int64_t start = spans[s].second;
      if ((forward && s > 0) || (input && s + 1 < stages)) {
        const auto it = ended.find({from, a.phase, a.micro_batch});
        if (it == ended.end()) continue;
        start = std::max(start, it->second);
      }
      if (spans[s].first < 0) spans[s].first = start;
      spans[s].second = start + (forward ? times.forward : input ? times.input : times.weight);
      ended[{s, a.phase, a.micro_batch}] = spans[s].second;
      ++next[s];
      moved = true;
    }
  }
  return spans;
}

// Qi et al. 2024, section 2.3: (p - 1)(T_F + T_B - 2 T_W) with T_B the whole backward, for T_W <= min(T_F, T_B - T_W);
// of ZB-H2 on the busiest stage max(0, (p - 1)(T_F + T_B - 3 T_W)), given micro-batches enough.
TEST(Schedules, ZeroBubblesAreTheClosedForms) {
  for (const std::int64_t p : {1, 2, 3, 4, 8}) {
    for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {5, 5, 5}, {7, 9, 6}, {10, 12, 3}, {4, 8, 1}, {9, 9, 8}}) {
      for (const std::int64_t m : {2 * p, 2 * p + 3, 5 * p}) {
        const ScheduleShape shape = {p, m, 1, {}};
        const std::int64_t work = m * (t.forward + t.input + t.weight);
        std::int64_t end = 0, busiest = 0;
        for (const auto& [first, last] : spans_of(make_schedule("zb-h1", shape), t)) end = std::max(end, last);
        EXPECT_EQ(end - work, (p - 1) * (t.forward + t.input - t.weight)) << p << " " << m << " " << t.weight;
        for (const auto& [first, last] : spans_of(make_schedule("zb-h2", shape), t))
          busiest = std::max(busiest, last - first);
        EXPECT_EQ(busiest - work, std::max<std::int64_t>(0, (p - 1) * (t.forward + t.input - 2 * t.weight)))
            << p << " " << m << " " << t.weight;
      }
    }
  }
}

// With the memory of the handmade orders, or one micro-batch more, the searched ones are no longer.
TEST(Schedules, SearchedOrdersAreAsGood) {
  const auto busiest = [](const std::string& name, const ScheduleShape& shape, const PhaseTimes& t) {
    std::int64_t most = 0;
    for (const auto& [first, last] : spans_of(make_schedule(name, shape), t)) most = std::max(most, last - first);
    return most;
  };
  for (const std::int64_t p : {1, 2, 4, 8}) {
    for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {7, 9, 6}, {10, 12, 3}, {10, 14, 10}}) {
      const ScheduleShape shape = {p, 4 * p, 1, std::vector<PhaseTimes>(p, t)};
      EXPECT_LE(busiest("zb-1p", shape, t), busiest("zb-h1", shape, t)) << p << " " << t.input;
      EXPECT_LE(busiest("zb-2p", shape, t), busiest("zb-h2", shape, t)) << p << " " << t.input;
    }
  }
}

// Virtual stages go round the stages: chunk c of stage s is virtual stage c p + s.
TEST(Schedules, PlaceChunksInTurn) {
  const Schedule s = make_schedule("interleaved", {4, 8, 3});
  for (std::int32_t k = 0; k < 12; ++k) {
    EXPECT_EQ(s.stage_of[k], k % 4);
    EXPECT_EQ(s.chunk_of[k], k / 4);
  }
}

TEST(Schedules, ListKnownNames) {
  try {
    find_schedule("1f2b");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("gpipe"), std::string::npos);
  }
}

}  // namespace
}  // namespace orrery
