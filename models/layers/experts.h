#pragma once

#include <cstdint>
#include <string>

#include "models/layers/expert_sizes.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Records a layer's experts, which take the place of an MLP; they read and return this rank's own rows.
Id experts(LayerTape& layer, Id x, const ExpertSizes& sizes);

}  // namespace orrery
