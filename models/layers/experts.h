#pragma once

#include <cstdint>
#include <string>

#include "models/layers/expert_sizes.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Records a layer's experts, which replace the MLP, with the transfers of tokens to and from their ranks. The input x
// and the result have a row for each token of this rank. A CUDA graph of the router (graphs_router) ends before the
// transfer to the experts.
Id experts(LayerTape& layer, Id x, const ExpertSizes& sizes);

}  // namespace orrery
