// Complete orders, evaluated with other times than those for which they were found.
#include "models/schedule/order_length.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/models/play_orders.h"

namespace orrery {
namespace {

// The tests' independent evaluator gives the same length for orders without a vocabulary.
TEST(OrderLength, IsThatOfTheTestsEvaluator) {
  for (const auto& [name, chunks] : {std::pair{"1f1b", 1}, {"zb-h1", 1}, {"zb-2p", 1}, {"zb-v", 2}, {"v-min", 2}}) {
    for (const std::int64_t p : {2, 3, 4, 8}) {
      for (const PhaseTimes& t : {PhaseTimes{1, 1, 1}, {7, 9, 6}, {10, 30, 2}}) {
        const ScheduleShape shape = {p, 3 * p, chunks, std::vector<PhaseTimes>(p * chunks, t)};
        const Schedule schedule = make_schedule(name, shape);
        std::int64_t end = 0;
        for (const auto& [first, last] : test::spans_of(schedule, t)) end = std::max(end, last);
        EXPECT_EQ(order_length(schedule, schedule.order, shape, 0), end) << name << " " << p << " " << t.input;
      }
    }
  }
}

TEST(OrderLength, HasNoEndWhereStagesWaitForEachOther) {
  Schedule schedule = make_schedule("gpipe", {2, 1, 1});
  std::swap(schedule.order[0][0], schedule.order[0][1]);
  EXPECT_EQ(order_length(schedule, schedule.order, {2, 1, 1}, 0), std::numeric_limits<std::int64_t>::max());
}

// For given times, the order found with these times is no longer than orders found with similar times.
TEST(OrderLength, OwnTimesFindNoLongerOrders) {
  for (const char* name : {"zb-v", "v-half", "vocab-1f1b", "vocab-zb-v"}) {
    const ScheduleRow& row = find_schedule(name);
    for (const std::int64_t p : {2, 4}) {
      for (const PhaseTimes& t : {PhaseTimes{100, 100, 100}, {70, 90, 60}, {100, 300, 20}}) {
        ScheduleShape shape = {p, 2 * p, row.chunks, std::vector<PhaseTimes>(p * row.chunks + 2, t)};
        const Schedule own = make_schedule(name, shape);
        ScheduleShape near = shape;
        for (PhaseTimes& n : near.times) n.weight = n.weight * 3 / 2;
        near.micro_batches = shape.micro_batches;
        const std::int64_t length = order_length(own, own.order, shape, 30);
        EXPECT_LT(length, std::numeric_limits<std::int64_t>::max()) << name;
        EXPECT_LE(length, order_length(own, make_schedule(name, near).order, shape, 30) * 51 / 50) << name << " " << p;
      }
    }
  }
}

}  // namespace
}  // namespace orrery
