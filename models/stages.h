#pragma once

#include <cstdint>
#include <vector>

#include "models/spec.h"

namespace orrery {

// Layers of every virtual stage in model order (length pipeline * virtual_stages), by strategy.stage_layers or the
// profile's rule:
//   even                even; when the layers do not divide, embedding and head count as a layer each, else the first
//                       stages take one more
//   even_with_embedding embedding and head each count as one layer
//   by_cost             layers weigh their matrix products, the head its own
//   by_cost_nanotron    blocks weigh layer 4h^2 + 3hf and head Vh; a stage closes when the running cost passes its
//   share by_parameters       layers and embeddings weigh their parameters
// Throws Error naming the rule when a stage would get no layer and no embedding or head either.
std::vector<std::int64_t> stage_layers(const Spec& spec);

}  // namespace orrery
