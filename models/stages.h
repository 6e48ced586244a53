#pragma once

#include <cstdint>
#include <vector>

#include "models/spec.h"

namespace orrery {

// Layers of every virtual stage in model order (length pipeline * virtual_stages), by strategy.stage_layers or the
// profile's rule:
//   even                even; when the layers do not divide, embedding and head count as a layer each, else by cost
//   even_with_embedding embedding and head each count as one layer
//   by_cost             layers weigh their matrix products, the head its own
//   by_cost_nanotron    layers weigh 4h^2 + 3hf, the head Vh
//   by_parameters       layers and embeddings weigh their parameters
// By cost, the dearest stage is as cheap as can be (DeepSpeed's partition_balanced searches for that too), but for
// nanotron: there a stage closes when the running cost passes its share. Unless strategy.stage_layers says so, no stage
// is left without a layer, embedding or head. Throws Error when there are too many stages for that.
std::vector<std::int64_t> stage_layers(const Spec& spec);

}  // namespace orrery
