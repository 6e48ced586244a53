#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/units.h"
#include "sim/heap.h"

namespace orrery {

// Pending events, taken in the order of time, then id, then serial. Time only goes on: nothing is pushed before now().
// Ranks that do the same work act at the same instants, so the heap holds instants rather than events: each has a bin
// of the events due then. Which bins are still open is remembered for the instants pushed to last; an instant that was
// forgotten gets a second bin, and all bins of an instant are emptied together.
class EventQueue {
 public:
  struct Event {
    std::uint32_t id = 0;
    std::uint32_t serial = 0;  // tells an event that was put off from the one that replaced it

    friend bool operator<(const Event& a, const Event& b) { return a.order() < b.order(); }
    friend bool operator==(const Event&, const Event&) = default;

   private:
    std::uint64_t order() const { return static_cast<std::uint64_t>(id) << 32 | serial; }
  };

  Picoseconds now() const { return now_; }

  // Whether events of now() are left to take.
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
    if (time == now_)
      late_.push({time, event.id, event.serial});
    else
      bins_[bin_of(time)].push_back(event);
  }

  // Goes on to the next instant that has events. Returns false when there is none.
  bool advance() {
    assert(!due());
    if (spent_) instants_.pop();
    spent_ = false;
    if (instants_.empty()) return false;
    now_ = instants_.top().time;
    due_.clear();
    taken_ = 0;
    empty(instants_.top().id);
    while (instants_.tied()) {
      instants_.pop();
      empty(instants_.top().id);
    }
    if (!std::is_sorted(due_.begin(), due_.end())) std::sort(due_.begin(), due_.end());
    spent_ = true;
    return true;
  }

 private:
  struct Recent {
    Picoseconds time = -1;
    std::uint32_t bin = 0;
  };
  static constexpr int kRecentBits = 4;

  Event late_event() const { return {late_.top().id, late_.top().serial}; }

  // Multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4).
  static std::size_t place(Picoseconds time) {
    return (static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15ULL) >> (64 - kRecentBits);
  }

  std::uint32_t bin_of(Picoseconds time) {
    Recent& recent = recent_[place(time)];
    if (recent.time != time) recent = {time, add_bin(time)};
    return recent.bin;
  }

  std::uint32_t add_bin(Picoseconds time) {
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(bins_.size()));
      bins_.emplace_back();
    }
    const std::uint32_t bin = spare_.back();
    spare_.pop_back();
    if (spent_)
      instants_.replace_top({time, bin});
    else
      instants_.push({time, bin});
    spent_ = false;
    return bin;
  }

  void empty(std::uint32_t bin) {
    std::vector<Event>& events = bins_[bin];
    if (due_.empty()) {
      due_.swap(events);
    } else {
      due_.insert(due_.end(), events.begin(), events.end());
      events.clear();
    }
    spare_.push_back(bin);
  }

  Picoseconds now_ = 0;
  std::vector<Event> due_;  // at now(), in order
  std::size_t taken_ = 0;   // of them
  Heap late_;               // pushed for now() when it had come
  Heap instants_;           // to come, with their bins
  bool spent_ = false;      // the first of them is now(): it stays until another is put in its place
  std::vector<std::vector<Event>> bins_;
  std::vector<std::uint32_t> spare_;
  std::array<Recent, std::size_t{1} << kRecentBits> recent_;
};

}  // namespace orrery
