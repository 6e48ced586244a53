#pragma once

#include "models/layers/layer_tape.h"

namespace orrery {

// Records latent attention to the tokens that an index chooses (DeepSeek-V3.2, arXiv 2512.02556, section 2.1), from the
// normed input to the values of this rank's heads (rows, heads * v_head_dim). All heads share one latent key a token
// (the paper's MQA mode): the projections of keys and of values are applied to queries and to results instead.
Id sparse_latent_attention(LayerTape& layer, Id x);

}  // namespace orrery
