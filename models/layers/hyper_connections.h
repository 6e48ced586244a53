#pragma once

#include <string>

#include "models/layers/layer_tape.h"

namespace orrery {

// The parts of hyper-connections (HyperConnections in models/spec/model.h). Streams are buffers (local_rows, streams,
// hidden), hidden states buffers (local_rows, hidden).

// A sum of a token's streams, and the weights of the token, of which mix_streams() reads those that the sum has not.
struct Collapsed {
  Id hidden, weights;
};

// Records the copy of the hidden states into every stream.
Id repeat_streams(LayerTape& layer, Id hidden);
// Records a sum of the hidden states and every stream.
Id add_to_streams(LayerTape& layer, const std::string& name, Id hidden, Id streams);
// Records the weights of every token and the sum of the streams that a branch reads, or with `head` the head.
Collapsed collapse_streams(LayerTape& layer, const std::string& name, Id streams, bool head);
// Records the streams after a branch with the result `branch`.
Id mix_streams(LayerTape& layer, const std::string& name, Id streams, Id branch, Id weights);

}  // namespace orrery
