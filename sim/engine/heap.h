#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/base/units.h"

namespace orrery {

// The key of an event, 16 bytes, ordered by time, then id, then serial. id: number of the task, or of the list of
// events, that is due at the time; serial: tells an outdated event from the event of the same id that replaced it.
struct TimedId {
  Picoseconds time = 0;
  std::uint32_t id = 0;
  std::uint32_t serial = 0;

  // Compares keys as single numbers of 128 bits, which needs no branch: a processor could not predict which of two
  // random times is less.
  friend bool operator<(const TimedId& a, const TimedId& b) { return a.order() < b.order(); }
  friend bool operator==(const TimedId&, const TimedId&) = default;

 private:
  __extension__ using Int128 = __int128;
  Int128 order() const { return static_cast<Int128>(time) << 64 | (static_cast<std::uint64_t>(id) << 32 | serial); }
};

// A queue that returns the least key first; equal keys come in any order. It is a heap with four children per key, half
// as deep as a binary heap (LaMarca and Ladner, The influence of caches on the performance of heaps, 1996). pop() moves
// the free position at the root down to a leaf, puts the last key there and moves it up as far as needed, which is
// seldom far. Keys are never changed or removed; users skip outdated keys when they come first.
class Heap {
 public:
  bool empty() const { return keys_.empty(); }
  std::size_t size() const { return keys_.size(); }
  const TimedId& top() const { return keys_.front(); }
  // Returns whether a second key has the same time as the least key. Only the children of the root are compared, since
  // the second least key is among these.
  bool tied() const {
    bool found = false;
    for (std::size_t i = 1; i < std::min(keys_.size(), kChildren + 1); ++i) found |= keys_[i].time == keys_[0].time;
    return found;
  }
  void reserve(std::size_t n) { keys_.reserve(n); }
  void clear() { keys_.clear(); }

  void push(TimedId key) {
    keys_.push_back(key);
    lift(keys_.size() - 1, key);
  }

  TimedId pop() {
    assert(!empty());
    const TimedId first = keys_.front();
    const TimedId last = keys_.back();
    keys_.pop_back();
    if (!keys_.empty()) lift(sink_hole(), last);
    return first;
  }

  // Does the work of pop() and push() at once, which is cheaper, since the number of keys stays the same.
  TimedId replace_top(TimedId key) {
    assert(!empty());
    const TimedId first = keys_.front();
    lift(sink_hole(), key);
    return first;
  }

 private:
  static constexpr std::size_t kChildren = 4;

  // Moves the free position (hole) at the root down, filling it with the least child on each level; returns the index
  // of the leaf that becomes free.
  std::size_t sink_hole() {
    TimedId* const keys = keys_.data();
    const std::size_t size = keys_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t child = kChildren * hole + 1;
      if (child >= size) return hole;
      std::size_t least = child;
      if (child + kChildren <= size) {
        const std::size_t left = child + static_cast<std::size_t>(keys[child + 1] < keys[child]);
        const std::size_t right = child + 2 + static_cast<std::size_t>(keys[child + 3] < keys[child + 2]);
        least = keys[right] < keys[left] ? right : left;
      } else {
        for (std::size_t i = child + 1; i < size; ++i) least = keys[i] < keys[least] ? i : least;
      }
      keys[hole] = keys[least];
      hole = least;
    }
  }

  // Puts a key into the free position `hole`, or higher up where the parents' keys are greater.
  void lift(std::size_t hole, TimedId key) {
    TimedId* const keys = keys_.data();
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (!(key < keys[parent])) break;
      keys[hole] = keys[parent];
      hole = parent;
    }
    keys[hole] = key;
  }

  std::vector<TimedId> keys_;
};

}  // namespace orrery
