#include "sim/search/order.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

VirtualStage unit_costs(bool splits = false) {
  VirtualStage costs;
  const auto pass = [](Picoseconds t) { return PassCost{.through = t, .busy = t, .compute = t}; };
  costs.forward = pass(1);
  costs.backward = pass(splits ? 1 : 2);
  costs.weight = pass(splits ? 1 : 0);
  return costs;
}

std::vector<Picoseconds> ends_of(std::string_view schedule, const ScheduleShape& shape, Picoseconds hop = 0,
                                 bool waits = false) {
  KnownOrders orders;
  const KnownOrder* order = orders.of(schedule, shape);
  const std::size_t places = order->schedule.stage_of.size();
  const bool splits = splits_backward(order->schedule);
  return play(*order, std::vector<VirtualStage>(places, unit_costs(splits)), std::vector<Picoseconds>(places, hop),
              waits);
}

Picoseconds end_of(std::string_view schedule, const ScheduleShape& shape, Picoseconds hop = 0, bool waits = false) {
  const std::vector<Picoseconds> ends = ends_of(schedule, shape, hop, waits);
  return *std::max_element(ends.begin(), ends.end());
}

// m + p - 1 forwards and backwards (Huang et al. 2019, Narayanan et al. 2021); interleaving divides the rest by v.
TEST(SearchOrder, BubblesAreThoseOfTheBooks) {
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t m : {8, 16, 32}) {
      EXPECT_EQ(end_of("gpipe", {p, m, 1, {}}), 3 * (m + p - 1));
      EXPECT_EQ(end_of("1f1b", {p, m, 1, {}}), 3 * (m + p - 1));
      EXPECT_EQ(end_of("naive", {p, m, 1, {}}), 3 * m * p);
      EXPECT_EQ(end_of("interleaved", {p, m, 2, {}}), 3 * (2 * m + p - 1));
    }
  }
}

TEST(SearchOrder, EveryScheduleEndsAndTakesAtLeastItsWork) {
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.vocabulary_barriers > 0) continue;  // no schedule of a search
    if (row.placement == ChunkPlacement::both_ways && row.copies > 2) continue;
    ScheduleShape shape = {.stages = 4, .micro_batches = 16, .chunks = row.chunks == 0 ? 2 : row.chunks};
    const std::int64_t work = 3 * 16 * (row.placement == ChunkPlacement::both_ways ? 1 : shape.chunks);
    for (const Picoseconds end : ends_of(row.name, shape)) EXPECT_GE(end, work) << row.name;
    EXPECT_GT(end_of(row.name, shape, 1), end_of(row.name, shape)) << row.name;
    EXPECT_GE(end_of(row.name, shape, 1, true), end_of(row.name, shape, 1)) << row.name;
  }
}

TEST(SearchOrder, CountsWhatIsAlive) {
  KnownOrders orders;
  const KnownOrder* order = orders.of("1f1b", {4, 16, 1, {}});
  for (std::size_t s = 0; s < 4; ++s) EXPECT_EQ(order->alive[s][0], static_cast<std::int64_t>(4 - s));
  EXPECT_EQ(orders.of("gpipe", {4, 16, 1, {}})->alive[2][0], 16);
  const KnownOrder* v = orders.of("zb-v", {4, 16, 2, std::vector<PhaseTimes>(8)});
  EXPECT_LE(v->alive[0][0] + v->alive[0][1], 8);
}

TEST(SearchOrder, FittedOrdersFollowTheirTimes) {
  KnownOrders orders;
  std::vector<PhaseTimes> times(4, {3, 3, 3});
  const std::size_t length = orders.of("zb-1p", {4, 8, 1, times})->schedule.order.front().size();
  EXPECT_EQ(length, 24U);
  times.back() = {9, 9, 9};
  const auto found = orders.of("zb-1p", {4, 8, 1, times})->schedule.order.front();
  const auto made = make_schedule("zb-1p", {4, 8, 1, times}).order.front();
  for (std::size_t i = 0; i < length; ++i) EXPECT_EQ(found[i].phase, made[i].phase) << i;
}

TEST(SearchOrder, LongOnesAreNotPlayed) {
  KnownOrders orders;
  EXPECT_EQ(orders.of("1f1b", {64, 1 << 14, 1, {}}), nullptr);
}

}  // namespace
}  // namespace orrery
