// Work on weights, gradients and optimizer states, and on the training data.
#pragma once

#include <cstdint>

#include "models/base/dimension.h"
#include "models/base/memory_tier.h"
#include "models/base/units.h"

namespace orrery {

// The op adds a gradient with `from` bytes per element to an accumulator with `to` bytes per element.
struct Accumulate {
  std::int64_t elements = 0;
  Bytes from = 2, to = 4;
};

// The op copies 64-bit token ids of one micro-batch from the training data on the host into a buffer of `rows` ids: the
// model's input tokens, or their labels (`labels`: the id of the token that follows each input token). ahead: the ids
// are taken this many positions later in the sequence. A model with multi-token prediction predicts `predictions`
// tokens for each input token; prediction number d takes its ids d positions later. The rank's tokens are cut into
// `parts` equal runs, and the buffer holds for each run, one after another, the ids of all its predictions.
struct Load {
  std::int64_t rows = 0;
  bool labels = false;
  std::int64_t ahead = 0, predictions = 1, parts = 1;
  // number of data parallel ranks whose token ids the op loads, one rank after the other; 0: only this rank's own ids
  std::int64_t replicas = 0;
  Side side = {};
};

struct Fill {
  Bytes bytes = 0;
};

// The op multiplies `elements` numbers of a flat buffer, from element `first` on, in place or into the buffer that the
// op writes. The multiplier is `factor`; if factor is 0, the op computes it from a number that it reads (the clip
// coefficient from the squared gradient norm, or 1 / loss scale). check: the op also records whether any element is
// infinite or NaN (for the loss scale).
struct Multiply {
  std::int64_t elements = 0;
  Bytes width = 4;
  double factor = 0;
  bool check = false;
  std::int64_t first = 0;
};

// A copy of `bytes` bytes between two memory tiers (GPU, host, disks), or within one. If the task's frame is a tile (a
// host buffer that states pass through piece by piece, BlockRole::tile), it copies `elements` elements of the rank's
// shards, from element `first` on. If the frame is a chunk's states, it copies those of the chunk's `elements` elements
// that this rank owns. From a longer buffer to a shorter one on the device it copies one of the equal parts that the
// tensor ranks have.
struct PlaceCopy {
  Bytes bytes = 0;
  MemoryTier from = MemoryTier::device, to = MemoryTier::host;
  std::int64_t first = 0, elements = 0;
  Bytes width = 2;  // number of bytes of a copied element
};

// An op without work: its task only waits for other tasks and frees buffers. device: the task waits for all compute
// tasks that were launched before it.
struct Wait {
  bool device = false;
};

// The op swaps two buffers of the same size when its task is issued: from then on the first operand uses the memory of
// the second, and the second that of the first.
struct Exchange {};

// The op adds the sum of squares of the gradients that this rank owns to the sum over the rank's earlier chunks (the
// rank has several where pipeline stages are virtual). A weight that several ranks hold is counted on one rank only: a
// replicated weight on the first rank of the tensor parallel group, key/value heads on the first rank of the group
// `kv`, a tied embedding table on the first stage.
//
// With Adafactor, two more passes of this kind come before the update (Shazeer and Stern 2018, 1804.04235, algorithm
// 4); they add to sums of each tensor instead of to one sum of the rank. lines: sums of squares of the gradients of
// each row and each column of a matrix. updates: sums of squares of each tensor's update and of each tensor's weights.
struct SquaredNorm {
  enum class Of : std::uint8_t { gradients, lines, updates };
  std::int64_t elements = 0;
  Bytes width = 4;  // bytes that are read of each element
  Of of = Of::gradients;
};

// The optimizer's update of `elements` parameters, from element `first` of the rank's shards: it reads gradients,
// master weights and moments, and writes master weights, moments and the weights that forward reads. gradient, master,
// moment, forward: bytes of one element of each. delayed: the update takes the gradients of the previous step (none in
// the first step). validated: the update is validated in the next step (post_validation.h); it is made only if the
// gradient norm known so far, the second number that the op reads, needs no clipping. momentum: the op is the first
// part of Muon's update of layers' matrices: it adds the gradient to the moment, and overwrites the gradient with the
// direction that is orthogonalized next. vectors: with Muon, how many of the elements are not in layers' matrices and
// have the two moments of AdamW, while matrices are updated by their directions alone; -1 with other optimizers.
struct Update {
  std::int64_t elements = 0;
  Bytes gradient = 4, master = 4, moment = 4, forward = 2;
  int moments = 2;
  bool fused = true;
  std::int64_t first = 0;
  bool delayed = false;
  bool validated = false;
  bool momentum = false;
  std::int64_t vectors = -1;
};

// The op copies weights' directions of Muon (their momentum, or its orthogonalized matrices if `back`) between the
// gradients' buffer, in which they have `from` bytes each, and the buffer of whole matrices, in which they have `to`
// bytes each. Layers of the same shape are orthogonalized in rounds, one layer on each data rank; the round's first
// layer begins at element `first` of the chunk's flat buffers. A rank that owns a shard of every layer copies its
// shards of all layers of the round, `elements` in all. A rank that owns all layers copies its layer of the round, and
// back each of them.
struct MoveDirections {
  std::int64_t elements = 0;
  Bytes from = 4, to = 2;
  std::int64_t first = 0;
  bool back = false;
};

// The op brings a matrix (rows, columns) by Newton-Schulz iterations near the orthogonal matrix with the same singular
// vectors, in place (Jordan 2024, Muon): with X X^T = A, each iteration computes X <- a X + (b A + c A^2) X, on the
// transposed matrix if rows > columns. `matrices` such matrices lie one after another. The matrix is weight number
// `parameter` of a layer: the rank with index i in its data-parallel group works on the i-th layer of the round whose
// first layer begins at element `first` of the chunk's flat buffers (MoveDirections).
struct Orthogonalize {
  std::int64_t rows = 0, columns = 0, matrices = 1;
  std::int64_t iterations = 5;
  std::int64_t first = 0, parameter = 0;
};

}  // namespace orrery
