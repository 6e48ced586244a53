#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "exec/cpu_launch.h"
#include "exec/lanes.h"
#include "exec/memory.h"
#include "exec/rank.h"
#include "exec/text.h"
#include "exec/transport.h"
#include "models/trace.h"

namespace orrery {

// What a rank's run of some steps left behind.
struct Execution {
  std::vector<Trace> steps;    // of this rank's plan, times from the step's begin
  std::vector<double> losses;  // by step: sum over this rank's tokens, on ranks that compute it
  Bytes first_step_peak = 0;
  MemoryUse memory;
  std::vector<Bytes> at_peak;  // by Category
};

struct ExecuteOptions {
  std::int64_t steps = 1;
  Training training;
  Watcher watcher;  // may be empty
  // Called before the first update of a step, when all gradients are complete, and after the last step, when all
  // weights are. Sees every buffer through `Buffers`.
  std::function<void(std::int64_t step, const Buffers&)> on_gradients;
  std::function<void(const Buffers&)> on_end;
};

// Runs a rank's plan for real: per task, in issue order, takes and returns its buffers, hands it to its lane, waits
// where the plan says the host does. It decides nothing.
Execution execute(const Rank& rank, Transport& transport, const Text& text, const ExecuteOptions& options);

}  // namespace orrery
