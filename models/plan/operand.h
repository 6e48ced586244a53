#pragma once

#include <cstdint>

namespace orrery {

// Scope says in which frame (one instance of a block's buffers) an operand lies, relative to its task's frame.
enum class Scope : std::uint8_t {
  own,  // the buffers of the task's own block and micro-batch
  // the buffers of the next block (such as a layer) of the stage, same micro-batch: forward writes its output there
  next,
  previous,  // the buffers of the block before this one on the stage: backward writes the gradient of its input there
  // the buffers of this block's unit (blocks whose weights are gathered together): weights, gradients before reduction
  unit,
  state,  // parameters, gradients and optimizer states of the task's chunk of layers, one flat buffer each
  rank    // scalars of the rank: gradient norm, whether a gradient is infinite, loss scale
};

enum class Access : std::uint8_t { read, write, read_write };

// Part says which weights of a chunk's flat buffer an operand covers if it is not one single weight (Operand::parameter
// is -1); they keep the order of the buffer. A shard holds its rank's piece of each of these weights.
enum class Part : std::uint8_t {
  all,
  partial,  // weights that all ranks of the tensor parallel group hold (LocalParameter::partial)
  kv,       // key/value heads that several ranks hold: the last LocalParameter::kv_rows rows of every weight
  // The embedding table that the first and the last pipeline stage both hold. It lies in the states of the block's own
  // chunk of layers, or in another frame (instance of a block's buffers: Frame::previous) if another chunk of the stage
  // has the table or if the stage gathers it
  tied
};

// A buffer, or a part of it, that a task uses; `slot` is the buffer's index in its block. If the operand is one weight,
// `parameter` is the weight's index in the block's parameter list, and the weight begins at Frame::base plus
// LocalParameter::offset. Else parameter is -1, and the operand is the complete buffer, or its `part`, or for a
// collective with `first` the range that the collective covers. The operand lies in the frame (instance of a block's
// buffers) that `scope` names. Exceptions are a tile, in the frame `tile` frames after the unit's, a version of the
// weights (Frame::weights) and Part::tied (plan.cpp: frame_of).
struct Operand {
  Scope scope = Scope::own;
  Access access = Access::read;
  std::uint16_t slot = 0;
  std::int32_t parameter = -1;
  Part part = Part::all;
  std::uint16_t tile = 0;  // for Scope::unit: number of the tile (range of a weight's rows) that the operand is, or 0

  friend bool operator==(const Operand&, const Operand&) = default;
};

}  // namespace orrery
