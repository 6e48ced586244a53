// Work on every row of hidden states: norms, activation functions, residual streams, embeddings.
#pragma once

#include <cstdint>

#include "models/base/dimension.h"
#include "models/base/units.h"
#include "models/plan/direction.h"

namespace orrery {

// RMS norm or layer norm over rows of `columns` values; backward also yields the gradient of the norm's weight. Each
// row may be cut into `pieces` parts of `columns` values, one on each of as many ranks; then one op sums over this
// rank's values (part `sums`), the sums are all-reduced, and another op normalizes (part `finish`).
struct Normalize {
  enum class Part : std::uint8_t { whole, sums, finish };
  std::int64_t rows = 0, columns = 0;
  bool layernorm = false;
  bool fused = true;
  Direction direction = Direction::forward;
  Part part = Part::whole;
  std::int64_t pieces = 1;
};

// The op copies a matrix (rows, first + second) into two contiguous buffers (rows, first) and (rows, second); backward
// joins the two gradients into one buffer.
struct Split {
  std::int64_t rows = 0, first = 0, second = 0;
  Direction direction = Direction::forward;
};

// The activation function of an MLP. gated: SwiGLU, from (rows, 2 * columns) to (rows, columns); else GeLU of (rows,
// columns). The bias before the activation costs no pass over memory, because it is the matrix product's epilogue
// (cuBLASLt) or is added as the activation reads its input (Megatron's bias-GeLU). weighted: each row is multiplied by
// one number, and backward yields that number's gradient too. limit > 0: the gates of SwiGLU are bounded above, and
// what they gate on both sides, before all else, as the kernel reads them (gpt-oss: swiglu_limit).
struct Activation {
  std::int64_t rows = 0, columns = 0;
  bool gated = true;
  bool fused = true;
  Direction direction = Direction::forward;
  bool weighted = false;
  double limit = 0;
};

// The same clamp by operations of eager PyTorch before the activation: of x (rows, 2 * columns) the gates and what they
// gate are bounded apart and concatenated. Backward yields the gradient of x, 0 where x was beyond its bounds.
struct Clamp {
  std::int64_t rows = 0, columns = 0;
  double limit = 0;
  Direction direction = Direction::forward;
};

// The residual connection out = residual + dropout(in + bias); without a residual out = dropout(in + bias). side: how
// the rows (or the heads and samples of attention scores) are sharded over a grid of tensor ranks.
struct Residual {
  std::int64_t rows = 0, columns = 0;
  bool residual = true;
  bool bias = false;
  bool dropout = false;
  bool fused = true;
  Direction direction = Direction::forward;
  Side side = {};
};

// The op adds the two gradients of a tensor that two ops read: out = a + b.
struct Add {
  std::int64_t elements = 0;
};

// The gradient of a bias: the sum of dy (rows, columns) over its rows.
struct BiasGradient {
  std::int64_t rows = 0, columns = 0;
};

// The op looks up a row of a (vocab, columns) table for each token; backward adds rows into the table's gradient.
// positions: the op adds to each row the learned embedding of the token's position, from a table of length vocab. The
// table may be a part of the complete table: this rank's part in the group `over`, or part number `panel`. adds: output
// rows of tokens that are not in that part keep their values, so that the results for all parts add up.
struct Embedding {
  std::int64_t rows = 0, columns = 0, vocab = 0;
  bool positions = false;
  Direction direction = Direction::forward;
  Bytes gradient_bytes = 4;  // bytes of one element of the table's gradient
  Dimension over = Dimension::tensor;
  std::int64_t panel = -1;
  bool adds = false;
};

// The cap of logits or scores (Gemma 2), y = cap tanh(x / cap), in place; backward multiplies the gradient by 1 - (y /
// cap)^2. Unfused: one kernel each for the division, tanh and the multiplication.
struct SoftCap {
  std::int64_t elements = 0;
  double cap = 0;
  bool fused = true;
  Direction direction = Direction::forward;
};

// The ops on the residual streams of hyper-connections (mHC: Xie et al. 2025, arXiv 2512.24880; HyperConnections in
// models/spec/model.h). Each of `rows` tokens has `streams` streams of `columns` columns.
//   repeat    copies the hidden states into every stream
//   add       adds the hidden states to every stream
//   collapse  turns the logits of a token's weights, a product with its streams, into the weights, by sigmoids and
//             `iterations` normalisations of the mixing matrix by rows and columns, and sums the streams by them
//   mix       writes each stream as a sum of all streams plus a multiple of a branch's result
// Backward of collapse and of mix each write a gradient of all streams, and Add ops sum these.
struct MixStreams {
  enum class Part : std::uint8_t { repeat, add, collapse, mix };
  std::int64_t rows = 0, streams = 0, columns = 0, iterations = 0;
  Part part = Part::repeat;
  Direction direction = Direction::forward;
};

}  // namespace orrery
