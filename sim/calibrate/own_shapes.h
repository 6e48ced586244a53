#pragma once

#include <string>

#include "sim/calibrate/calibration.h"

namespace orrery {

// A short run that measures the ops of a spec at their very shapes (`orrery calibrate --for SPEC`): the spec itself
// with as few layers and micro-batches as still hold every product and attention of the whole step. Updates and
// transfers of whole stages keep their kind and shrink with the layers. Throws Error where the spec is refused.
CalibrationSpec own_shapes(const std::string& spec, const std::string& device);

}  // namespace orrery
