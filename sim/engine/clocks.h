#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/base/units.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/moving_times.h"

namespace orrery {

// The ends of things whose speeds change while they run. A thing runs by itself, at a speed of its own, or on a clock
// of virtual time, which many things share whose speeds are always equal, as in generalised processor sharing (Parekh
// and Gallager, A generalized processor sharing approach to flow control, 1993): a thing on a clock keeps the reading
// at which it ends, so that a change of the clock's speed touches the clock and its first end, not the things.
//
// Pace says how things run:
//   Length            what a thing has left, a number
//   Speed             a number; at speed 0 a thing stands still
//   Length progress(Picoseconds time, Speed speed)     what a thing gets through in a time
//   Picoseconds time_for(Length left, Speed speed)     when a thing ends
//   Length after(Length left, Length progress)         what is left then
//   bool kAdditive    whether the progress of two times is, to the last unit, that of both together
// Ends are the same, to the picosecond, as if each thing ran by itself and its progress were found whenever its speed
// changes. If progress is rounded and so not additive, a thing that comes to a clock between two changes of the clock's
// speed therefore runs by itself up to the next.
//
// Ends are events of the clocks' queue, to which a caller may push events of its own. An event of the number kWake says
// nothing; other events that the clocks have pushed are ends if ended() says so.
template <class Pace>
class Clocks {
 public:
  using Length = typename Pace::Length;
  using Speed = typename Pace::Speed;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kWake = UINT32_MAX;

  // things: number of things; more may be added.
  explicit Clocks(std::uint32_t things = 0) : things_(things) {}

  EventQueue& queue() { return queue_; }
  Picoseconds now() const { return queue_.now(); }
  void add_things(std::uint32_t count) {
    if (count > things_.size()) things_.resize(count);
  }

  // Starts a thing now, by itself. id: number of the event of its end, which also says in what order things end that
  // end at the same time.
  void start(std::uint32_t thing, std::uint32_t id, Length left, Speed speed) {
    Thing& t = things_[thing];
    t = {left, now(), speed, t.serial, id, kNone};
    schedule(t);
  }

  // Lets a thing run by itself from now on.
  void run(std::uint32_t thing, Speed speed) {
    Thing& t = things_[thing];
    const bool alone = !t.on_clock();
    leave(thing);
    if (t.speed == speed && alone) return;
    if (t.speed != speed) wind(t, speed);
    schedule(t);
  }

  // Lets a thing run on a clock from now on.
  void hang(std::uint32_t thing, std::uint32_t clock) {
    grow(clock);
    leave(thing);
    Thing& t = things_[thing];
    Clock& c = clocks_[clock];
    if (Pace::kAdditive || t.speed != c.speed) wind(t, c.speed);
    if (t.since == c.since || Pace::kAdditive) return attach(thing, clock, reading(c, t.since));
    schedule(t);
    t.clock = clock | kComing;
    c.comers.push_back({thing, t.serial});
  }

  // Takes a thing from its clock, if it is on one; it then has no end until hang().
  void leave(std::uint32_t thing) {
    Thing& t = things_[thing];
    if (t.on_clock()) {
      ++clocks_[t.clock].outdated;
      mark(t.clock);
      take_off(t);
    }
    t.clock = kNone;
  }

  // Makes a thing that has not ended one that is not there.
  void stop(std::uint32_t thing) {
    leave(thing);
    ++things_[thing].serial;
  }

  // Returns what a thing has left now, or had left at its end and beyond.
  Length left(std::uint32_t thing) const {
    const Thing& t = things_[thing];
    if (t.on_clock()) return Pace::after(t.left, reading(clocks_[t.clock], now()));
    return t.speed == 0 ? t.left : Pace::after(t.left, Pace::progress(now() - t.since, t.speed));
  }

  // Gives a clock another speed from now on. Clocks stand still at first.
  void set_speed(std::uint32_t clock, Speed speed) {
    grow(clock);
    Clock& c = clocks_[clock];
    if (c.speed == speed) return;
    c.reading = reading(c, now());
    c.since = now();
    c.speed = speed;
    for (const Comer comer : c.comers) {
      Thing& t = things_[comer.thing];
      if (t.serial != comer.serial || t.clock != (clock | kComing)) continue;
      wind(t, speed);
      attach(comer.thing, clock, c.reading);
    }
    c.comers.clear();
    mark(clock);
  }

  // Moves the queue on to the next instant that has events, if none are due now. Returns false when there is none.
  bool advance() {
    if (!clocks_.empty()) return advance_clocks();
    return queue_.due() || queue_.advance();
  }

  // Returns whether an event is the end of a thing, which then has ended.
  bool ended(std::uint32_t thing, EventQueue::Event event) {
    Thing& t = things_[thing];
    if (t.id != event.id || t.serial != event.serial) return false;
    ++t.serial;
    return true;
  }

 private:
  static constexpr std::uint32_t kComing = std::uint32_t{1} << 31;

  struct Thing {
    Length left = 0;           // by itself: what was left at the time `since`; on a clock: the reading at its end
    Picoseconds since = 0;     // by itself: when its progress was found
    Speed speed = 0;           // by itself
    std::uint32_t serial = 0;  // tells an outdated end from the one that replaced it
    std::uint32_t id = 0;
    std::uint32_t clock = kNone;  // with kComing while the thing still runs by itself

    bool on_clock() const { return clock < kComing; }
  };

  // the end of a thing on a clock
  struct End {
    Length reading = 0;
    std::uint32_t thing = 0;
    std::uint32_t serial = 0;
    friend bool operator>(const End& a, const End& b) { return a.reading > b.reading; }
  };

  // a thing that will be on a clock
  struct Comer {
    std::uint32_t thing = 0;
    std::uint32_t serial = 0;
  };

  struct Clock {
    Length reading = 0;  // reading at the time `since`
    Picoseconds since = 0;
    Speed speed = 0;
    std::vector<End> ends;     // a heap with the first end on top, and outdated ones
    std::size_t outdated = 0;  // number of outdated ends in `ends`
    std::vector<Comer> comers;
    bool dirty = false;  // whether the clock is in dirty_
  };

  static Length reading(const Clock& c, Picoseconds time) {
    return time == c.since || c.speed == 0 ? c.reading : c.reading + Pace::progress(time - c.since, c.speed);
  }

  void grow(std::uint32_t clock) {
    if (clock < clocks_.size()) return;
    clocks_.resize(clock + 1);
    firsts_.grow(clock + 1);
  }

  // Gives a thing that runs by itself its end, and makes older ones outdated.
  void schedule(Thing& t) {
    ++t.serial;
    if (t.speed != 0) queue_.push(t.since + Pace::time_for(t.left, t.speed), {t.id, t.serial});
  }

  // Finds the progress of a thing that runs by itself, and gives it another speed.
  void wind(Thing& t, Speed speed) {
    if (t.speed != 0) t.left = Pace::after(t.left, Pace::progress(now() - t.since, t.speed));
    t.since = now();
    t.speed = speed;
  }

  // Puts a thing on a clock, which has a reading at the time when the thing's progress was found.
  void attach(std::uint32_t thing, std::uint32_t clock, Length reading) {
    Thing& t = things_[thing];
    Clock& c = clocks_[clock];
    t.left += reading;
    t.clock = clock;
    c.ends.push_back({t.left, thing, ++t.serial});
    std::push_heap(c.ends.begin(), c.ends.end(), std::greater<>());
    mark(clock);
  }

  // Lets a thing on a clock be one by itself, without an end.
  void take_off(Thing& t) {
    const Clock& c = clocks_[t.clock];
    t.left = Pace::after(t.left, c.reading);
    t.since = c.since;
    t.speed = c.speed;
    t.clock = kNone;
    ++t.serial;
  }

  void mark(std::uint32_t clock) {
    if (clocks_[clock].dirty) return;
    clocks_[clock].dirty = true;
    dirty_.push_back(clock);
  }

  bool outdated(const End& end) const { return things_[end.thing].serial != end.serial; }
  static void pop(Clock& c) {
    std::pop_heap(c.ends.begin(), c.ends.end(), std::greater<>());
    c.ends.pop_back();
  }

  // Drops outdated ends: those before the first end, or all when they are the most.
  void drop_outdated(Clock& c) {
    if (c.outdated > 16 && 2 * c.outdated > c.ends.size()) {
      std::erase_if(c.ends, [&](const End& end) { return outdated(end); });
      std::make_heap(c.ends.begin(), c.ends.end(), std::greater<>());
      c.outdated = 0;
    }
    while (!c.ends.empty() && outdated(c.ends.front())) {
      pop(c);
      --c.outdated;
    }
  }

  Picoseconds first_end(const Clock& c) const {
    if (c.ends.empty() || c.speed == 0) return MovingTimes::kNone;
    return c.since + Pace::time_for(Pace::after(c.ends.front().reading, c.reading), c.speed);
  }

  void find_first(std::uint32_t clock) {
    Clock& c = clocks_[clock];
    c.dirty = false;
    drop_outdated(c);
    if (c.ends.empty()) c.reading = 0;
    firsts_.move(clock, first_end(c));
  }

  bool advance_clocks() {
    for (const std::uint32_t clock : dirty_) find_first(clock);
    dirty_.clear();
    const Picoseconds first = firsts_.earliest();
    if (first != now() && !queue_.due()) {
      if (first != MovingTimes::kNone && first != waited_for_) queue_.push(waited_for_ = first, {kWake, 0});
      if (!queue_.advance()) return false;
    }
    while (firsts_.earliest() == now()) end_on(firsts_.first());
    return true;
  }

  // Ends the things of a clock that end now.
  void end_on(std::uint32_t clock) {
    Clock& c = clocks_[clock];
    for (drop_outdated(c); first_end(c) <= now(); drop_outdated(c)) {
      Thing& t = things_[c.ends.front().thing];
      pop(c);
      take_off(t);
      queue_.push(now(), {t.id, t.serial});
    }
    firsts_.move(clock, first_end(c));
  }

  EventQueue queue_;
  std::vector<Thing> things_;
  std::vector<Clock> clocks_;
  MovingTimes firsts_;                // for each clock, when the first of its things ends
  Picoseconds waited_for_ = -1;       // the last time at which queue_ was given an event for a clock
  std::vector<std::uint32_t> dirty_;  // clocks whose first end is to be found again
};

}  // namespace orrery
