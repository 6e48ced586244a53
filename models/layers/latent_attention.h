#pragma once

#include <cstdint>
#include <string>

#include "models/layers/attention.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Latent attention: queries, and keys and values packed (LatentHeads).
HeadSlots latent_heads(LayerTape& layer, Id x);
// Exchanges all heads of this rank's positions for some heads of all the block's positions: queries, keys and values by
// themselves, as DeepSpeed-Ulysses exchanges them (2309.14509), since they are of different widths.
HeadSlots exchange_latent(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part);

}  // namespace orrery
