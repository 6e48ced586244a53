#pragma once

#include <cstdint>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// The versions of the weights that the micro-batches of an asynchronous schedule use on a stage, the same in forward
// and backward (weight stashing: PipeDream, Narayanan et al. 2019, section 3.3). Version v has had v updates; update u,
// from 0, makes version u + 1 with the gradients of micro-batches [u * every, (u + 1) * every).
struct WeightVersions {
  std::int64_t kept = 1;          // versions kept at a time, the newest included: no more than the schedule needs
  std::int64_t staleness = 0;     // most updates that lie between a gradient's weights and its update: u - met
  std::vector<std::int64_t> met;  // version that each micro-batch uses
};

// The micro-batches of an update all use the version that is the newest when stage `reference` begins the first of
// them: `reference` is the stage itself, or for all stages the first one (vertical sync; PipeDream-2BW, Narayanan et
// al. 2021, section 3.1, where that version is one update old). every: micro-batches of an update.
WeightVersions weight_versions(const std::vector<Action>& order, const std::vector<Action>& reference,
                               std::int64_t every);

}  // namespace orrery
