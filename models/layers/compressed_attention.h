#pragma once

#include "models/layers/layer_tape.h"

namespace orrery {

// Records the attention of DeepSeek-V4 (CompressedAttention in models/spec/model.h) for one kind of layer, from the
// normed input to the output projection. Heads, and the groups of heads of the output projection, are cut over the
// tensor group; the keys that all heads share, compressed or not, are on every rank.
Id compressed_attention(LayerTape& layer, Id x, Mixer mixer);

}  // namespace orrery
