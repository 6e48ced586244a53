// Zero-bubble orders: closed forms of the paper, worked out by an evaluator of the test's own.
#include "models/zero_bubble.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace orrery {
namespace {

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
TEST(ZeroBubble, OrdersAreTheClosedForms) {
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
TEST(ZeroBubble, SearchedOrdersAreAsGood) {
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

}  // namespace
}  // namespace orrery
