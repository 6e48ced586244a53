#pragma once

#include <cstdint>
#include <string>

#include "models/layers/attention.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Records latent attention (MLA) up to the attention op; returns the queries, and the packed keys and values
// (LatentHeads).
HeadSlots latent_heads(LayerTape& layer, Id x);
// Records all-to-alls from all heads of this rank's positions to some heads of all positions of its sequence block: one
// each for queries, keys and values, as in DeepSpeed-Ulysses (2309.14509), since their numbers of columns differ.
HeadSlots exchange_latent(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part);

}  // namespace orrery
