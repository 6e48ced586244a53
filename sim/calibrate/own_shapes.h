#pragma once

#include <string>

#include "sim/calibrate/calibration.h"

namespace orrery {

// The run that measures the ops of a spec with their exact shapes (`orrery calibrate --for SPEC`): the spec itself with
// the fewest layers and micro-batches that still have every matrix product and attention of the complete step.
// Optimizer updates, and transfers of a pipeline stage's gradients and parameters, are smaller than in the complete
// step, as there are fewer layers. Throws Error if the spec is invalid.
CalibrationSpec own_shapes(const std::string& spec, const std::string& device);

}  // namespace orrery
