#pragma once

#include <cstdint>

namespace orrery {

// Scope says in which frame (one instance of a block's buffers) an operand lies, relative to its task's frame.
enum class Scope : std::uint8_t {
  own,  // the buffers of the task's own block and micro-batch
  // the buffers of the next block (such as a layer) of the stage, same micro-batch: forward writes its output there
  next,
  // the buffers of the block before this one on the stage: backward writes that block's output gradient there
  previous,
  // the buffers of a block of the other model of the step, same micro-batch (Frame::beside)
  beside,
  // the buffers of this block's unit (blocks whose weights are gathered together): weights, gradients before reduction
  unit,
  state,  // parameters, gradients and optimizer states of the task's chunk of layers, one flat buffer each
  rank    // scalars of the rank: gradient norm, whether a gradient is infinite, loss scale
};

enum class Access : std::uint8_t { read, write, read_write };

// Part says which weights in a flat buffer of a chunk of layers an operand covers, if it is not one single weight
// (Operand::parameter is -1). The operand has these weights in the buffer's order; if the buffer is a shard, it has
// this rank's piece of each of them.
enum class Part : std::uint8_t {
  all,
  partial,  // weights that all tensor ranks hold and whose gradients they sum (LocalParameter::partial)
  kv,       // key/value heads that several ranks hold: the last LocalParameter::kv_rows rows of every weight
  // The embedding table that the first and the last pipeline stage both hold. It lies in the states of the block's own
  // chunk of layers, or in another frame (instance of a block's buffers: Frame::previous) if another chunk of the stage
  // has the table or if the stage gathers it
  tied
};

// A buffer, or a part of it, that an op uses. `slot` is the buffer's index in its block, and `scope` names the frame
// (instance of a block's buffers) in which the buffer lies. If `parameter` is not -1, the operand is one weight, with
// this index in the block's parameter list; it begins at Frame::base plus LocalParameter::offset. If parameter is -1,
// the operand is the complete buffer, or its `part`, or for a collective with `first` the range that the collective
// covers. Three kinds of operands lie in other frames than `scope` names (plan.cpp: frame_of): tiles, each in the frame
// `tile` frames after the unit's, older versions of the weights (Frame::weights), and Part::tied.
struct Operand {
  Scope scope = Scope::own;
  Access access = Access::read;
  std::uint16_t slot = 0;
  std::int32_t parameter = -1;
  Part part = Part::all;
  // for Scope::unit: number of the tile (range of a weight's rows) that the operand is; 0: it is not a tile
  std::uint16_t tile = 0;

  friend bool operator==(const Operand&, const Operand&) = default;
};

}  // namespace orrery
