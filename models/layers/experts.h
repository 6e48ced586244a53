#pragma once

#include <cstdint>
#include <string>

#include "models/layers/expert_sizes.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Records a layer's experts, which replace the MLP; x and the result have this rank's own rows.
Id experts(LayerTape& layer, Id x, const ExpertSizes& sizes);

}  // namespace orrery
