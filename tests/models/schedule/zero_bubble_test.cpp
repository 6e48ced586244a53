// Zero-bubble orders: closed forms of the paper, worked out by an evaluator of the test's own.
#include "models/schedule/zero_bubble.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/models/play_orders.h"

namespace orrery {
namespace {

using test::spans_of;

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

// An order with at most p micro-batches in flight is one with at most 2p, so that room for more makes no step longer,
// however few micro-batches there are.
TEST(ZeroBubble, MoreRoomIsNoSlower) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t m : {p / 2, p, p + 2, 2 * p, 4 * p}) {
      for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {7, 9, 6}, {10, 12, 3}, {10, 14, 10}}) {
        const ScheduleShape shape = {p, m, 1, std::vector<PhaseTimes>(p, t)};
        const auto busiest = [&](const char* name) {
          std::int64_t most = 0;
          for (const auto& [first, last] : spans_of(make_schedule(name, shape), t)) most = std::max(most, last - first);
          return most;
        };
        EXPECT_LE(busiest("zb-2p"), busiest("zb-1p")) << p << " " << m << " " << t.input;
      }
    }
  }
}

// A micro-batch is held from its forward to its weight gradient: at no point of an order more micro-batches than the
// schedule states.
TEST(ZeroBubble, OrdersHoldNoMoreThanTheirName) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {7, 9, 6}, {10, 12, 3}}) {
      for (const auto& [name, most] : {std::pair{"zb-1p", p}, std::pair{"zb-2p", 2 * p}}) {
        for (const auto& order : make_schedule(name, {p, 4 * p, 1, std::vector<PhaseTimes>(p, t)}).order) {
          std::int64_t held = 0;
          for (const Action& a : order) {
            held += a.phase == Phase::forward ? 1 : a.phase == Phase::weight_gradient ? -1 : 0;
            EXPECT_LE(held, most) << name << " " << p;
          }
          EXPECT_EQ(held, 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery
