#pragma once

#include <cstdint>
#include <string>

#include "models/layers/attention.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// The compressed vectors of keys and values of this rank's rows, and the part of the keys with positions, which all
// heads share, of all rows.
struct LatentKeys {
  Id compressed, rope;
};
LatentKeys latent_keys(LayerTape& layer, Id x);
// Latent attention (MLA) up to its core: returns the queries, and keys and values packed (LatentHeads).
HeadSlots latent_heads(LayerTape& layer, Id x);
// Records all-to-alls from all heads of this rank's positions to some heads of all positions of its sequence block: one
// each for queries, keys and values, as in DeepSpeed-Ulysses (2309.14509), since their numbers of columns differ.
HeadSlots exchange_latent(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part);

}  // namespace orrery
