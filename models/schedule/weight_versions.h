#pragma once

#include <cstdint>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// The versions of the weights that the micro-batches of an asynchronous schedule use on a stage, the same version in
// forward and backward (weight stashing: PipeDream, Narayanan et al. 2019, section 3.3). Version v has had v updates.
// Update u, counted from 0, makes version u + 1 with the gradients of micro-batches [u * every, (u + 1) * every).
struct WeightVersions {
  // number of versions that are kept at the same time, the newest included: no more than the schedule needs
  std::int64_t kept = 1;
  // largest number of updates between the version that a gradient was computed with and the update that uses it
  std::int64_t staleness = 0;
  std::vector<std::int64_t> met;  // for each micro-batch, the version of the weights that it uses
};

// Returns the versions of the weights that a stage with this `order` uses: all micro-batches of an update use the
// version that is the newest when stage `reference` begins the first of them. `reference` is the order of the stage
// itself, or of the first stage for all stages (vertical sync; PipeDream-2BW, Narayanan et al. 2021, section 3.1, where
// that version is one update old). every: number of micro-batches of an update.
WeightVersions weight_versions(const std::vector<Action>& order, const std::vector<Action>& reference,
                               std::int64_t every);

}  // namespace orrery
