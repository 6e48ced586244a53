#include "sim/engine/event_queue.h"

#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/small_plans.h"

namespace orrery {
namespace {

using Event = EventQueue::Event;

std::vector<Event> take_all(EventQueue& queue) {
  std::vector<Event> events;
  while (queue.due()) events.push_back(queue.take());
  return events;
}

TEST(EventQueue, TakesAnInstantAtATimeInTheOrderOfIdAndSerial) {
  EventQueue queue;
  for (const std::uint32_t id : {3U, 1U, 2U}) queue.push(10, {id, 1});
  queue.push(20, {0, 1});
  queue.push(10, {1, 0});
  EXPECT_FALSE(queue.due());
  ASSERT_TRUE(queue.advance());
  EXPECT_EQ(queue.now(), 10);
  EXPECT_EQ(take_all(queue), (std::vector<Event>{{1, 0}, {1, 1}, {2, 1}, {3, 1}}));
  ASSERT_TRUE(queue.advance());
  EXPECT_EQ(queue.now(), 20);
  EXPECT_EQ(take_all(queue), (std::vector<Event>{{0, 1}}));
  EXPECT_FALSE(queue.advance());
}

TEST(EventQueue, WhatIsPushedForNowTakesItsPlaceAmongWhatIsLeft) {
  EventQueue queue;
  for (const std::uint32_t id : {5U, 7U, 9U}) queue.push(3, {id, 1});
  ASSERT_TRUE(queue.advance());
  EXPECT_EQ(queue.take(), (Event{5, 1}));
  queue.push(3, {8, 1});
  queue.push(3, {1, 1});
  EXPECT_EQ(take_all(queue), (std::vector<Event>{{1, 1}, {7, 1}, {8, 1}, {9, 1}}));
}

// Against an ordered set: delays from a few values (ties, instants remembered) to many (instants forgotten).
TEST(EventQueue, EqualsAnOrderedSet) {
  for (const std::uint64_t delays : {1, 2, 5, 40, 1000, 1'000'000}) {
    EventQueue queue;
    std::set<std::tuple<Picoseconds, std::uint32_t, std::uint32_t>> set;
    std::uint32_t serial = 0;
    const auto push = [&](std::uint64_t random) {
      const Picoseconds time = queue.now() + static_cast<Picoseconds>(random % delays);
      const auto id = static_cast<std::uint32_t>(random >> 40) % 100;
      queue.push(time, {id, ++serial});
      set.emplace(time, id, serial);
    };
    for (std::uint64_t i = 0; i < 200; ++i) push(scrambled(delays, i));
    for (std::uint64_t i = 200; !set.empty(); ++i) {
      while (!queue.due()) ASSERT_TRUE(queue.advance());
      const Event event = queue.take();
      ASSERT_EQ(std::tuple(queue.now(), event.id, event.serial), *set.begin());
      set.erase(set.begin());
      const std::uint64_t random = scrambled(delays + 1, i);
      const std::uint64_t more = i < 3000 ? random % 3 : 0;
      for (std::uint64_t k = 0; k < more; ++k) push(scrambled(random, k));
    }
    EXPECT_FALSE(queue.advance());
  }
}

}  // namespace
}  // namespace orrery
