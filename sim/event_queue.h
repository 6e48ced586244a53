#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/units.h"

namespace orrery {

// Something due at a time; equal times are taken by id.
struct Event {
  Picoseconds time = 0;
  std::uint32_t id = 0;
  std::uint32_t serial = 0;  // tells an event that was put off from the one that replaced it

  friend bool operator<(const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.id < b.id; }
};

// A four-ary heap whose top may be replaced in place: most events bring exactly one new one, and replacing costs one
// sift instead of two.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  // The earliest event. It stays as a hole that the next push fills; the hole closes at the next call of take().
  Event take() {
    if (hole_) close();
    hole_ = true;
    return heap_.front();
  }

  // Whether an event is left besides the one taken last.
  bool more() const { return heap_.size() > (hole_ ? 1U : 0U); }

  void push(const Event& e) {
    if (hole_) {
      hole_ = false;
      sink(0, e);
      return;
    }
    heap_.push_back(e);
    std::size_t i = heap_.size() - 1;
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!(e < heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = e;
  }

 private:
  void close() {
    hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(0, last);
  }

  void sink(std::size_t i, const Event& e) {
    const std::size_t n = heap_.size();
    for (;;) {
      const std::size_t first = 4 * i + 1;
      if (first >= n) break;
      std::size_t least = first;
      const std::size_t end = first + 4 < n ? first + 4 : n;
      for (std::size_t c = first + 1; c < end; ++c) {
        if (heap_[c] < heap_[least]) least = c;
      }
      if (!(heap_[least] < e)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = e;
  }

  std::vector<Event> heap_;
  bool hole_ = false;
};

}  // namespace orrery
