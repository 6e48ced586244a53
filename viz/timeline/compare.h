#pragma once

#include <string>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// Two timelines, event by event. Events are the same where process (by rank, else by order), label, micro-batch, layer
// and chunk are; several of one identity match in order of time.
struct Matching {
  std::vector<EventId> there;  // by event of a: the one of b, or kNoEvent
  std::vector<EventId> back;   // by event of b
  EventId matched = 0;
};
Matching match(const Timeline& a, const Timeline& b);

// Where the time went: durations of a label over all ranks, by how much they differ, the largest first.
struct Difference {
  std::string name;
  Kind kind = Kind::other;
  std::int64_t count_a = 0, count_b = 0;
  Picoseconds a = 0, b = 0;
  Picoseconds more() const { return b - a; }
};
std::vector<Difference> differences(const Timeline& a, const Timeline& b);

// How much longer an event of a takes than b's: its duration over that there, minus one; 0 where there is no match.
double relative_change(const Timeline& a, const Timeline& b, const Matching& m, EventId e);

}  // namespace orrery
