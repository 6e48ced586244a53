#pragma once

#include <string>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// Pairs of corresponding events of two timelines a and b: those with the same process (the same rank, or the same
// position where ranks are unknown), label (name and kind), micro-batch, layer and model chunk. If several events agree
// in all of these, they are paired in order of time. Waiting and host work have no match.
struct Matching {
  std::vector<EventId> there;  // for each event of timeline a, the matching event of timeline b, or kNoEvent
  std::vector<EventId> back;   // for each event of timeline b, the matching event of timeline a, or kNoEvent
  EventId matched = 0;
};
Matching match(const Timeline& a, const Timeline& b);

// The number and total duration, over all ranks, of the events with one name and kind in two timelines a and b.
// differences() sorts by the difference of the durations, the largest first.
struct Difference {
  std::string name;
  Kind kind = Kind::other;
  std::int64_t count_a = 0, count_b = 0;
  Picoseconds a = 0, b = 0;
  Picoseconds more() const { return b - a; }
};
std::vector<Difference> differences(const Timeline& a, const Timeline& b);

// Returns the relative change of an event of a: its duration over the duration of the matching event of b, minus one; 0
// without a match.
double relative_change(const Timeline& a, const Timeline& b, const Matching& m, EventId e);

}  // namespace orrery
