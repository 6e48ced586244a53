#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/asynchrony.h"
#include "models/spec/spec.h"
#include "models/trace/trace.h"
#include "sim/cost/costs.h"

namespace orrery {

// Some steps of every worker against parameter servers, each worker at its own pace (models/spec/asynchrony.h), as one
// plan: the ranks of all workers and, behind them, for each worker a rank that stands for the servers' work for that
// worker. A server updates with the push of whichever worker comes, so its work for one worker is in order, and workers
// slow each other only through shared resources (NIC, processors, memory) and, with bounded staleness, through the
// updates that a pull waits for. All servers hold equally large ranges of the weights and do the same work, so that one
// stands for all.
struct ServerSteps {
  Plan plan;
  Timing timing;
  std::int64_t steps = 0;
};

// unfolded: the plan of one step with every rank, to which costs belongs. steps: number of steps of every worker, at
// least 1.
ServerSteps server_steps(const Plan& unfolded, const Spec& spec, const Costs& costs, std::int64_t steps);

// The progress of the workers up to the moment when the first of them has made all its steps (`window`), and the
// staleness of the weights.
struct ServerClocks {
  Picoseconds window = 0;
  double steps = 0;  // number of steps that a worker makes within the window, averaged over workers
  Staleness staleness;
};
ServerClocks server_clocks(const ServerSteps& steps, const Trace& trace);

}  // namespace orrery
