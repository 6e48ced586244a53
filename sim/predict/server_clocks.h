#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/asynchrony.h"
#include "models/spec/spec.h"
#include "models/trace/trace.h"
#include "sim/cost/costs.h"

namespace orrery {

// A plan of several steps of asynchronous workers and parameter servers, in which each worker goes on without waiting
// for other workers (models/spec/asynchrony.h). It has the ranks of all workers and after them, for each worker, a rank
// (the service) that stands for the servers' work for that worker. A server handles each push when it arrives, so that
// its work for one worker is in order, and workers slow each other only through shared resources (NIC, processors,
// memory) and, with bounded staleness, through the updates that a pull waits for. All servers hold equally large ranges
// of the weights and do the same work, so that one stands for all.
struct ServerSteps {
  Plan plan;
  Timing timing;
  std::int64_t steps = 0;
};

// Makes the plan of `steps` steps (at least 1) of every worker. unfolded: the plan of one step with every rank; costs:
// the costs of that plan.
ServerSteps server_steps(const Plan& unfolded, const Spec& spec, const Costs& costs, std::int64_t steps);

// The progress of the workers of a parameter server until the first of them has made all its steps, and how stale the
// weights are that they compute with.
struct ServerClocks {
  Picoseconds window = 0;  // the time from the begin until the first worker has made all its steps
  double steps = 0;        // number of steps that a worker makes in that time, a mean over workers
  Staleness staleness;
};
ServerClocks server_clocks(const ServerSteps& steps, const Trace& trace);

}  // namespace orrery
