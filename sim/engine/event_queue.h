#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/base/units.h"
#include "sim/engine/heap.h"

namespace orrery {

// Pending events of a simulation, taken in the order of time, then id, then serial. Nothing may be pushed before now().
// Many ranks act at the same instants, so the heap holds instants rather than events, each with a linked list (chain)
// of the events due at that instant. A small table, recent_, remembers the chains to which events were added last; an
// instant that is no longer in the table gets a second chain, and all chains of an instant are taken together.
class EventQueue {
 public:
  struct Event {
    std::uint32_t id = 0;
    std::uint32_t serial = 0;  // tells an outdated event from the event of the same id that replaced it

    friend bool operator<(const Event& a, const Event& b) { return a.order() < b.order(); }
    friend bool operator==(const Event&, const Event&) = default;

   private:
    std::uint64_t order() const { return static_cast<std::uint64_t>(id) << 32 | serial; }
  };

  Picoseconds now() const { return now_; }

  // Returns whether events at the current time now() remain to be taken.
  bool due() const { return taken_ < due_.size() || !late_.empty(); }

  Event take() {
    assert(due());
    if (!late_.empty() && (taken_ == due_.size() || late_event() < due_[taken_])) {
      const Event first = late_event();
      late_.pop();
      return first;
    }
    return due_[taken_++];
  }

  void push(Picoseconds time, Event event) {
    assert(time >= now_);
    if (time == now_) {
      late_.push({time, event.id, event.serial});
      return;
    }
    const std::uint32_t link = add_link(event);
    Recent& recent = recent_[place(time)];
    if (recent.time == time)
      links_[recent.last].next = link;
    else
      push_instant({time, link});
    recent = {time, link};
  }

  // Moves the clock to the next instant that has events. Returns false when there is none.
  bool advance() {
    assert(!due());
    if (spent_) instants_.pop();
    spent_ = !instants_.empty();
    if (!spent_) return false;
    now_ = instants_.top().time;
    due_.clear();
    taken_ = 0;
    empty(instants_.top().id);
    while (instants_.tied()) {
      instants_.pop();
      empty(instants_.top().id);
    }
    if (due_.size() > 1 && !std::is_sorted(due_.begin(), due_.end())) std::sort(due_.begin(), due_.end());
    return true;
  }

 private:
  struct Link {
    Event event;
    std::uint32_t next = kNone;  // index of the next element of the linked list (chain of events, or unused elements)
  };
  struct Recent {
    Picoseconds time = -1;
    std::uint32_t last = kNone;  // index of the last element in the linked list of events at `time`
  };
  static constexpr std::uint32_t kNone = 0xffffffffU;
  static constexpr int kRecentBits = 4;

  Event late_event() const { return {late_.top().id, late_.top().serial}; }

  // Returns the index at which the table recent_ keeps a time, by multiplicative hashing (Knuth, The Art of Computer
  // Programming, volume 3, section 6.4).
  static std::size_t place(Picoseconds time) {
    return (static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15ULL) >> (64 - kRecentBits);
  }

  std::uint32_t add_link(Event event) {
    if (spare_ == kNone) {
      links_.push_back({event});
      return static_cast<std::uint32_t>(links_.size() - 1);
    }
    const std::uint32_t link = spare_;
    spare_ = links_[link].next;
    links_[link] = {event};
    return link;
  }

  void push_instant(TimedId instant) {
    if (spent_)
      instants_.replace_top(instant);
    else
      instants_.push(instant);
    spent_ = false;
  }

  void empty(std::uint32_t first) {
    std::uint32_t last = first;
    for (;; last = links_[last].next) {
      due_.push_back(links_[last].event);
      if (links_[last].next == kNone) break;
    }
    links_[last].next = spare_;
    spare_ = first;
  }

  Picoseconds now_ = 0;
  std::vector<Event> due_;  // the events at time now(), in order
  std::size_t taken_ = 0;   // number of events of due_ that take() has returned
  Heap late_;               // events pushed for the time now() after the clock had reached that time
  Heap instants_;           // times later than now(), each with its chain of events
  bool spent_ = false;      // whether all events of the earliest instant in instants_ have been taken
  std::vector<Link> links_;
  std::uint32_t spare_ = kNone;
  std::array<Recent, std::size_t{1} << kRecentBits> recent_;
};

}  // namespace orrery
