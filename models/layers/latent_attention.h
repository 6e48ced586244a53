#pragma once

#include <cstdint>
#include <string>

#include "models/layers/attention.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Buffers of latent keys and values. compressed: the compressed vectors of keys and values, for this rank's rows. rope:
// the part of the keys that is rotated by positions (RoPE), which all heads share, for all rows.
struct LatentKeys {
  Id compressed, rope;
};
LatentKeys latent_keys(LayerTape& layer, Id x);
// Records latent attention (MLA) up to attention itself: returns the queries, and keys and values packed (LatentHeads).
HeadSlots latent_heads(LayerTape& layer, Id x);
// Records all-to-alls from all heads of this rank's positions to some heads of all positions of its sequence block: one
// each for queries, keys and values, as in DeepSpeed-Ulysses (2309.14509), since their numbers of columns differ.
HeadSlots exchange_latent(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part);

}  // namespace orrery
