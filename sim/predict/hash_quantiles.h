#pragma once

#include <atomic>
#include <cstdint>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/cost/costs.h"
#include "sim/cost/hash_draw.h"
#include "sim/report/report.h"

namespace orrery {

// The plan of a step whose uplinks are chosen by hashes, with its costs in the mean over hashes.
struct HashedStep {
  const Plan& plan;
  const Spec& spec;
  const Profile& profile;
  const Costs& costs;

  // Returns the simulated time of the step for one draw of the hashes.
  Seconds at(const HashDraw& draw, const std::atomic<bool>* stop = nullptr) const;
};

// Returns whether a report says how the spec's step differs with hashes: these choose uplinks or planes, and no seed
// says which draw of them is asked for. That of a pass of a generated text, or one that only says what a checkpoint
// costs, does not.
bool draws_hashes(const Spec& spec);

// Returns the quantiles over hashes of a step that takes `step` in their mean, of which `mean` is simulated. Draws
// (thousands) are put in the order of a first estimate: the sum, over the sets of connections, of the set's slowdown
// times what the step gains by it, which is simulated with one set unlucky at a time and all others at their median. A
// few draws around each quantile are then simulated, and their median is the result. A step with one set of connections
// that matters is exact.
StepQuantiles hash_quantiles(const HashedStep& hashed, Seconds mean, Seconds step,
                             const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
