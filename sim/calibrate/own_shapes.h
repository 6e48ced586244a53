#pragma once

#include <string>

#include "sim/calibrate/calibration.h"

namespace orrery {

// The run that measures the ops of a spec with their exact shapes (`orrery calibrate --for SPEC`): the spec itself with
// the fewest layers and micro-batches that still have every matrix product and attention of the complete step. Updates,
// and transfers of a stage's gradients and parameters, are smaller than in the complete step, as there are fewer
// layers. Throws Error where the spec is refused.
CalibrationSpec own_shapes(const std::string& spec, const std::string& device);

}  // namespace orrery
