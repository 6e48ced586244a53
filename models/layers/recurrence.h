#pragma once

#include "models/layers/layer_tape.h"

namespace orrery {

// Records a recurrence, such as a state-space or linear-attention layer (models/base/layer_kind.h), from the normed
// input to the output projection: projection, short convolution, the recurrence itself, a norm with a gate, output
// projection. Heads, and the groups of heads that share keys, are cut over the tensor group.
Id recurrence(LayerTape& layer, Id x);

}  // namespace orrery
