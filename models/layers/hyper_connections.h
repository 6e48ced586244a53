#pragma once

#include <string>

#include "models/layers/layer_tape.h"

namespace orrery {

// These functions record the ops of hyper-connections, which replace the residual stream by several parallel streams
// (HyperConnections in models/spec/model.h). A buffer of streams has the shape (local_rows, streams, hidden), a buffer
// of hidden states the shape (local_rows, hidden).

// hidden: the weighted sum of each token's streams, which a branch reads. weights: all mixing weights of each token,
// including those that only mix_streams() reads.
struct Collapsed {
  Id hidden, weights;
};

// Records the copy of the hidden states into every stream, at the start of the model.
Id repeat_streams(LayerTape& layer, Id hidden);
// Records the addition of the hidden states to every stream.
Id add_to_streams(LayerTape& layer, const std::string& name, Id hidden, Id streams);
// Records the computation of each token's mixing weights, and the weighted sum of the streams that a branch (attention
// or MLP) reads. head: the sum is the one before the model's final norm.
Collapsed collapse_streams(LayerTape& layer, const std::string& name, Id streams, bool head);
// Records the new streams after a branch: each is a weighted sum of the old streams and the branch's result.
Id mix_streams(LayerTape& layer, const std::string& name, Id streams, Id branch, Id weights);

}  // namespace orrery
