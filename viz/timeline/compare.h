#pragma once

#include <string>
#include <vector>

#include "viz/timeline/steps.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// A timeline with what is needed to compare it with another: the launches and steps of its events. The timeline must
// outlive it.
struct ComparedSide {
  explicit ComparedSide(const Timeline& timeline) : t(timeline), launches(launches_of(t)), steps(t, launches) {}
  ComparedSide(const ComparedSide&) = delete;
  ComparedSide& operator=(const ComparedSide&) = delete;

  const Timeline& t;
  const Launches launches;
  const Steps steps;
};

// Pairs of corresponding events of two timelines a and b. If both name ops alike, events correspond that have the same
// rank, step, label (name and kind), micro-batch, layer and model chunk. If fewer than half do (a prediction and a
// trace of PyTorch), events correspond that have the same rank, step, class of kernels, shape and stream, where both
// sides have equally many of them (by shape only where has_few_shapes() holds for both). Among several, the k-th in
// order of time corresponds to the k-th. A rank, or a class of like ranks, corresponds to the class that contains it,
// and steps beyond those of the other timeline to its last one, so that several events may correspond to the same one.
// Waiting and host work have no match, nor have events of a rank that the other timeline does not have.
struct Matching {
  std::vector<EventId> there;  // for each event of timeline a, the matching event of timeline b, or kNoEvent
  std::vector<EventId> back;   // for each event of timeline b, the matching event of timeline a, or kNoEvent
  EventId matched = 0;         // number of events of b that have a match
  bool by_name = true;         // whether both name ops alike
};
Matching match(const ComparedSide& a, const ComparedSide& b);

// The time of one op, or of all ops of one class, in two timelines a and b: means over their ranks and steps, in
// seconds, and numbers of events. shown: the name as tables show it (shown_name()).
struct Difference {
  std::string name, shown;
  Kind kind = Kind::other;
  bool whole_class = false;  // whether the row sums up all ops of a class
  double count_a = 0, count_b = 0;
  double a = 0, b = 0;
  double more() const { return b - a; }
};
// Returns the sums of classes and then those of ops, each sorted by the difference, the largest first. by_name: whether
// an op is what has one name and kind; else what has one class of kernels and shape.
std::vector<Difference> differences(const ComparedSide& a, const ComparedSide& b, bool by_name);

// Two timelines compared. offset: time in b at which the first work of the first step begins, minus that in a.
struct Comparison {
  Matching matching;
  std::vector<Difference> rows;
  Picoseconds offset = 0, step_a = 0, step_b = 0;  // step_a, step_b: mean length of a step
};
Comparison compare(const Timeline& a, const Timeline& b);

// Returns the relative change of an event of a: its duration over the duration of the matching event of b, minus one; 0
// without a match.
double relative_change(const Timeline& a, const Timeline& b, const Matching& m, EventId e);

}  // namespace orrery
