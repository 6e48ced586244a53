#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "exec/memory/rank.h"
#include "models/spec/generation.h"

namespace orrery {

// Says where in a chunk's buffer kRecurrentStates a layer keeps the states of its recurrence, sequence after sequence,
// and behind all of these the last inputs of its convolution. Holds no numbers itself.
class RecurrentStates {
 public:
  explicit RecurrentStates(const Rank& rank) : sequences_(rank.spec.generation->batch / rank.spec.strategy.data) {
    std::map<std::uint32_t, Bytes> ends;  // for each chunk's states, the end of the layers so far
    for (const Frame& frame : rank.plan.frames) {
      if (frame.micro_batch != 0 || rank.plan.blocks[frame.block].role != BlockRole::layer) continue;
      Bytes& end = ends[frame.state];
      const RecurrentBytes each = recurrent_bytes(rank.spec, frame.layer);
      layers_[{frame.state, frame.layer}] = {end, each};
      end += sequences_ * each.sum();
    }
  }

  Bytes states_at(const Frame& frame, std::int64_t sequence) const {
    const Layer& layer = layers_.at({frame.state, frame.layer});
    return layer.at + sequence * layer.each.states;
  }
  Bytes inputs_at(const Frame& frame, std::int64_t sequence) const {
    const Layer& layer = layers_.at({frame.state, frame.layer});
    return layer.at + sequences_ * layer.each.states + sequence * layer.each.inputs;
  }

 private:
  struct Layer {
    Bytes at = 0;
    RecurrentBytes each;
  };

  std::int64_t sequences_ = 1;
  std::map<std::pair<std::uint32_t, std::int32_t>, Layer> layers_;
};

}  // namespace orrery
