#include "sim/engine/clocks.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/engine/stretch.h"
#include "tests/random_bits.h"

namespace orrery {
namespace {

constexpr std::uint32_t kTick = 1000;  // an event that is no end
constexpr auto kUnslowed = Stretched::kAlone;

// A pace without rounding of progress: a thing gets through `speed` units in a picosecond.
struct Whole {
  using Length = std::int64_t;
  using Speed = std::uint32_t;
  static constexpr bool kAdditive = true;
  static Length progress(Picoseconds time, Speed speed) { return time * speed; }
  static Picoseconds time_for(Length left, Speed speed) { return std::max<Length>(left + speed - 1, 0) / speed; }
  static Length after(Length left, Length progress) { return left - progress; }
};

using Ends = std::vector<std::pair<Picoseconds, std::uint32_t>>;

// Takes events up to the next tick, and returns the ends among them with their times.
template <class Pace>
Ends ends_to_tick(Clocks<Pace>& clocks) {
  EventQueue& queue = clocks.queue();
  Ends ends;
  for (bool tick = false; !tick && clocks.advance();) {
    while (queue.due()) {
      const EventQueue::Event event = queue.take();
      tick |= event.id == kTick;
      if (event.id < kTick && clocks.ended(event.id, event)) ends.push_back({queue.now(), event.id});
    }
  }
  return ends;
}

TEST(Clocks, AChangeOfAClocksSpeedMovesAllEnds) {
  Clocks<Stretched> clocks(3);
  for (std::uint32_t thing : {2U, 0U, 1U}) {
    clocks.start(thing, thing, thing == 1 ? 300 : 200, 0);
    clocks.hang(thing, 5);
  }
  EXPECT_FALSE(clocks.advance()) << "the clock stands still";
  clocks.set_speed(5, 2 * kUnslowed);
  clocks.queue().push(100, {kTick, 0});
  EXPECT_EQ(ends_to_tick(clocks), Ends{});
  EXPECT_EQ(clocks.left(1), 250);
  clocks.set_speed(5, kUnslowed);
  EXPECT_EQ(ends_to_tick(clocks), (Ends{{250, 0}, {250, 2}, {350, 1}}));
}

// A thing that leaves a clock at the speed that it had there ends when it would have ended there.
TEST(Clocks, ThingsThatLeaveAClockGoOn) {
  Clocks<Stretched> clocks(2);
  for (std::uint32_t thing : {0U, 1U}) {
    clocks.start(thing, thing, 100, 0);
    clocks.hang(thing, 0);
  }
  clocks.set_speed(0, 3 * kUnslowed);
  clocks.queue().push(50, {kTick, 0});
  EXPECT_EQ(ends_to_tick(clocks), Ends{});
  clocks.run(0, 3 * kUnslowed);
  clocks.set_speed(0, 2 * kUnslowed);
  EXPECT_EQ(ends_to_tick(clocks), (Ends{{50 + 2 * 83, 1}, {300, 0}}));
}

// A thing that comes to a clock between two changes of its speed, and leaves it before the second, is not on it.
TEST(Clocks, ThingsMayLeaveBeforeTheyAreOnAClock) {
  Clocks<Stretched> clocks(1);
  clocks.set_speed(0, 2 * kUnslowed);
  clocks.queue().push(10, {kTick, 0});
  ends_to_tick(clocks);
  clocks.start(0, 0, 100, 0);
  clocks.hang(0, 0);
  clocks.run(0, 2 * kUnslowed);
  clocks.set_speed(0, kUnslowed);
  EXPECT_EQ(ends_to_tick(clocks), (Ends{{210, 0}}));
}

// Follows things by themselves, and finds their progress whenever their speeds change.
template <class Pace>
class OneByOne {
 public:
  OneByOne(std::uint32_t things, std::uint32_t clocks) : things_(things), speeds_(clocks) {}

  bool runs(std::uint32_t thing) const { return things_[thing].running; }
  void start(std::uint32_t thing, typename Pace::Length left, Picoseconds now) {
    things_[thing] = {left, now, 0, kNobody, true};
  }
  void stop(std::uint32_t thing) { things_[thing].running = false; }
  void run(std::uint32_t thing, std::uint32_t speed, Picoseconds now) {
    things_[thing].clock = kNobody;
    change(things_[thing], speed, now);
  }
  void hang(std::uint32_t thing, std::uint32_t clock, Picoseconds now) {
    things_[thing].clock = clock;
    change(things_[thing], speeds_[clock], now);
  }
  void set_speed(std::uint32_t clock, std::uint32_t speed, Picoseconds now) {
    speeds_[clock] = speed;
    for (Thing& t : things_) {
      if (t.running && t.clock == clock) change(t, speed, now);
    }
  }
  typename Pace::Length left(std::uint32_t thing, Picoseconds now) const {
    const Thing& t = things_[thing];
    return t.speed == 0 ? t.left : Pace::after(t.left, Pace::progress(now - t.since, t.speed));
  }
  Ends ends_to(Picoseconds time) {
    Ends ends;
    for (std::uint32_t i = 0; i < things_.size(); ++i) {
      Thing& t = things_[i];
      if (!t.running || t.speed == 0) continue;
      const Picoseconds end = t.since + Pace::time_for(t.left, t.speed);
      if (end > time) continue;
      ends.push_back({end, i});
      t.running = false;
    }
    std::sort(ends.begin(), ends.end());
    return ends;
  }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  struct Thing {
    typename Pace::Length left = 0;
    Picoseconds since = 0;
    std::uint32_t speed = 0, clock = kNobody;
    bool running = false;
  };

  void change(Thing& t, std::uint32_t speed, Picoseconds now) {
    if (t.speed == speed) return;
    if (t.speed != 0) t.left = Pace::after(t.left, Pace::progress(now - t.since, t.speed));
    t.since = now;
    t.speed = speed;
  }

  std::vector<Thing> things_;
  std::vector<std::uint32_t> speeds_;
};

// Things that start, come to clocks, leave them and stop at random, under clocks of changing speeds, of which few are
// different, so that things often come and go without a change of theirs.
template <class Pace>
void play(std::uint64_t seed, std::uint32_t unit) {
  constexpr std::uint32_t kThings = 24, kClocks = 3;
  std::uint64_t counter = seed << 32;
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(test::random_bits(++counter) % n); };
  Clocks<Pace> clocks(kThings);
  OneByOne<Pace> expected(kThings, kClocks);
  std::size_t ended = 0;
  for (int round = 0; round < 400; ++round) {
    const Picoseconds now = clocks.now();
    for (std::uint32_t ops = below(6); ops > 0; --ops) {
      const std::uint32_t thing = below(kThings), clock = below(kClocks), speed = below(5) * unit / 2;
      if (below(4) == 0) {
        clocks.set_speed(clock, speed);
        expected.set_speed(clock, speed, now);
      } else if (!expected.runs(thing)) {
        const std::uint32_t left = below(500);
        clocks.start(thing, thing, left, 0);
        expected.start(thing, left, now);
        clocks.hang(thing, clock);
        expected.hang(thing, clock, now);
      } else if (below(8) == 0) {
        clocks.stop(thing);
        expected.stop(thing);
      } else if (below(2) == 0) {
        clocks.run(thing, speed);
        expected.run(thing, speed, now);
      } else {
        clocks.hang(thing, clock);
        expected.hang(thing, clock, now);
      }
    }
    for (std::uint32_t thing = 0; thing < kThings; ++thing) {
      if (!expected.runs(thing)) continue;
      ASSERT_EQ(clocks.left(thing), expected.left(thing, now)) << seed << ", " << round;
    }
    clocks.queue().push(now + 1 + below(100), {kTick, 0});
    const Ends ends = ends_to_tick(clocks);
    ASSERT_EQ(ends, expected.ends_to(clocks.now())) << seed << ", " << round;
    ended += ends.size();
  }
  EXPECT_GT(ended, 100U);
}

TEST(Clocks, EndThingsWhenFollowingEachByItselfDoes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    play<Stretched>(seed, kUnslowed + 12345);
    play<Whole>(1000 + seed, 4);
  }
}

}  // namespace
}  // namespace orrery
