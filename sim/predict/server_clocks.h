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
// plan: slots of all workers, and behind them, for each worker, a slot that serves it. A server updates with the push
// of whichever worker comes, so that the work for one worker is in order, and depends on other workers only through the
// resources that workers share: NIC, processors, memory; and, with bounded staleness, through the updates that a pull
// waits for. All servers have equal ranges and do the same, so one stands for all.
struct ServerSteps {
  Plan plan;
  Timing timing;
  std::int64_t steps = 0;
};

// unfolded: a step of every rank, with its costs. steps: steps of every worker, at least 1.
ServerSteps server_steps(const Plan& unfolded, const Spec& spec, const Costs& costs, std::int64_t steps);

// The progress of the workers until the first one had made all its steps, and the age of the weights.
struct ServerClocks {
  Picoseconds window = 0;
  double steps = 0;  // steps of a worker, on average, within the window
  Staleness staleness;
};
ServerClocks server_clocks(const ServerSteps& steps, const Trace& trace);

}  // namespace orrery
