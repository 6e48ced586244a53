#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/plan.h"
#include "models/units.h"

namespace orrery {

// What happened to one task. Transfers have four times: issued by the host, entered (this end is ready), matched (the
// last member has come in), ended: cost = ended - matched, waiting = matched - entered. Others enter and match at once.
struct Span {
  Picoseconds issued = 0, entered = 0, matched = 0, ended = 0;
  TaskId cause = kNone;  // the task whose end let this one enter; kNone: nothing but the host
};

// The host of a slot went on at `time`, when `cause` had ended; it issues the tasks from `first` on.
struct HostResume {
  TaskId first = 0;
  Picoseconds time = 0;
  TaskId cause = kNone;
};

// The timeline of one step, simulated or measured: one span per task of the plan. It knows no plan; who reads it has
// both.
struct Trace {
  std::string source = "simulated";
  std::vector<Span> spans;
  std::vector<std::vector<HostResume>> host;  // by slot, in order
  Picoseconds step_time = 0;
};

}  // namespace orrery
