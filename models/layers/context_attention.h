#pragma once

#include <cstdint>
#include <string>

#include "models/layers/attention.h"
#include "models/layers/layer_tape.h"

namespace orrery {

// Records attention of a sequence that is sharded over the context group.
Id context_attention(LayerTape& layer, const HeadSlots& heads, bool windowed);
// Records an all-to-all over the ranks that exchange heads for positions (DeepSpeed-Ulysses).
Id all_to_all(LayerTape& layer, const std::string& name, Id x, Bytes bytes);

}  // namespace orrery
