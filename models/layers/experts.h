#pragma once

#include <cstdint>
#include <string>

#include "models/layers/expert_sizes.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// A layer's experts, in the place of an MLP; on local rows.
Id experts(LayerTape& layer, Id x, const ExpertSizes& sizes);

}  // namespace orrery
