#pragma once

#include "viz/timeline/steps.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// Two steps of a trace of several, counted from 0: the first one that has work (works()), and of those after it the one
// whose length on all ranks together is the median one. -1: the trace has no two steps with work.
struct FirstAndSteady {
  int first = -1, steady = -1;
};
FirstAndSteady first_and_steady_step(const Timeline& timeline, const Steps& steps);

// Returns one step of a trace, from the begin of its first event on: all events of the step, and counters and arrows
// within its time. Processes, tracks and labels are those of the trace.
Timeline one_step(const Timeline& timeline, const Steps& steps, int step);

}  // namespace orrery
